"""The unit cost as the finance API and `weir unit-cost --json` show it: amounts are exact texts."""

from collections.abc import Mapping
from fractions import Fraction

from billing.domain.money import show_amount
from billing.domain.unit_cost.hosted import Comparison
from billing.domain.unit_cost.hours_file import hours_of
from billing.domain.unit_cost.quantities import show_decimal, show_exact
from billing.domain.unit_cost.report import GroupCost, HourOfDay, TokenCosts, UnitCost
from billing.domain.unit_cost.step_model import COEFFICIENTS
from billing.domain.unit_cost.words import notes, summary
from gateway.adapters.unit_costs import UnitCostFound
from gateway.administration.views import View
from gateway.domain.instants import shown

RATIO_DECIMALS = 6


def unit_cost_view(found: UnitCostFound) -> View:
    """All of it; whether usage is complete is said by whoever knows."""
    question, cost = found.question, found.cost
    currency = cost.costs.currency
    return {
        "since": shown(question.since_ms),
        "until": shown(question.until_ms),
        "model": question.model,
        "by": question.by.value,
        "currency": currency,
        "bill": _bill(cost),
        "step_model": _step_model(cost),
        "items": [_group(each, currency) for each in cost.groups],
        "hours": [_hour(each) for each in cost.hours],
        "at_full_use": _token_costs(cost.at_full_use, currency),
        "now": _token_costs(cost.now, currency),
        "hosted": [_comparison(each, currency) for each in cost.comparisons],
        "summary": summary(cost),
        "notes": notes(cost, models=found.models, hosted_requests=found.hosted_requests),
    }


def _bill(cost: UnitCost) -> View:
    currency = cost.costs.currency
    idle_gpu_ms = cost.paid_gpu_ms - cost.busy_gpu_ms
    return {
        "total": show_amount(cost.bill_pico, currency),
        "price_per_gpu_hour": show_amount(cost.costs.price_per_gpu_hour_pico, currency),
        "operations_cost": show_amount(cost.costs.operations_pico, currency),
        "gpu_hours": _hours(cost.paid_gpu_ms),
        "busy_gpu_hours": _hours(cost.busy_gpu_ms),
        "idle_gpu_hours": _hours(idle_gpu_ms),
        "busy": show_amount(cost.busy_pico, currency),
        "idle": show_amount(cost.idle_pico, currency),
        "utilisation": _ratio(cost.utilisation),
        "over_spans": cost.over_spans,
    }


def _step_model(cost: UnitCost) -> View:
    model = cost.model
    values: dict[str, Fraction | None] = {name: getattr(model, name) for name in COEFFICIENTS}
    return {
        "name": model.name,
        "source": model.source,
        "measured": False,
        "step_ms": show_decimal(cost.step_ms, decimals=3),
        "coefficients": {
            name: None if value is None else show_exact(value) for name, value in values.items()
        },
    }


def _group(each: GroupCost, currency: str) -> View:
    amounts: Mapping[str, int] = {
        "prefill": each.charged.prefill_pico,
        "decode": each.charged.decode_pico,
        "kv": each.charged.kv_pico,
        "cost": each.charged.cost_pico,
        "idle_share": each.idle_share_pico,
        "revenue": each.revenue_pico,
        "margin": each.margin_pico,
    }
    return {
        "group": each.group,
        "requests": each.requests,
        "prompt_tokens": each.prompt_tokens,
        "cached_prompt_tokens": each.cached_prompt_tokens,
        "output_tokens": each.output_tokens,
        **{name: show_amount(pico, currency) for name, pico in amounts.items()},
        "other_revenue": {
            name: show_amount(pico, name) for name, pico in each.other_revenue_pico.items()
        },
        "unpriced_requests": each.unpriced_requests,
    }


def _hour(each: HourOfDay) -> View:
    return {
        "hour": each.hour,
        "paid_gpu_hours": _hours(each.paid_gpu_ms),
        "busy_gpu_hours": _hours(each.busy_gpu_ms),
        "utilisation": _ratio(each.utilisation),
    }


def _token_costs(costs: TokenCosts, currency: str) -> View:
    return {
        name: None if pico is None else show_amount(pico, currency)
        for name, pico in costs._asdict().items()
    }


def _comparison(each: Comparison, currency: str) -> View:
    return {
        "name": each.name,
        "prices": {
            model: {
                "input": _per_million(rate.input_pico, currency),
                "output": _per_million(rate.output_pico, currency),
            }
            for model, rate in each.rates.items()
        },
        "cost": show_amount(each.hosted_pico, currency),
        "break_even_utilisation": _ratio(each.break_even),
        "break_even_price_factor": _ratio(each.price_factor),
        "break_even_gpu_hour": show_amount(each.gpu_hour_pico, currency),
        "saved": show_amount(each.saved_pico, currency),
    }


def _per_million(pico: int, currency: str) -> str:
    return show_amount(pico * 1_000_000, currency)


def _hours(gpu_ms: Fraction | int) -> str:
    return show_decimal(hours_of(gpu_ms), decimals=RATIO_DECIMALS)


def _ratio(share: Fraction | None) -> str | None:
    return None if share is None else show_decimal(share, decimals=RATIO_DECIMALS)
