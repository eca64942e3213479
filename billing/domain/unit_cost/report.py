"""The whole answer: the bill, who it is for, what tokens cost, and what hosted would have."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from billing.domain.invoicing.rounding import largest_remainder
from billing.domain.unit_cost.allocation import Cell, Charged, allocate, bill_pico
from billing.domain.unit_cost.hosted import Comparison, HostedRate, PoolCost, compare
from billing.domain.unit_cost.paid_time import PaidTime
from billing.domain.unit_cost.quantities import half_up
from billing.domain.unit_cost.step_model import EngineWork, StepModel, total_work

MILLION = 1_000_000


class Sold(NamedTuple):
    """Records that the pool served, of one group, model and currency."""

    group: str
    model: str
    currency: str | None
    requests: int
    prompt_tokens: int
    cached_prompt_tokens: int
    output_tokens: int
    cost_pico: int
    """What tenants owe for them."""
    unpriced_requests: int
    """Those that are to be paid for and have no cost: they are missing from it."""


class Costs(NamedTuple):
    """What was paid."""

    currency: str
    price_per_gpu_hour_pico: int
    operations_pico: int


class GroupCost(NamedTuple):
    """One tenant, model, class, day or hour of the day."""

    group: str
    requests: int
    prompt_tokens: int
    cached_prompt_tokens: int
    output_tokens: int
    charged: Charged
    idle_share_pico: int
    """Of the idle time, in proportion to what it was charged."""
    revenue_pico: int
    """In the bill's own currency."""
    other_revenue_pico: Mapping[str, int]
    """In others, which are never added."""
    unpriced_requests: int

    @property
    def margin_pico(self) -> int:
        """Revenue less what the work cost, without any of the idle time."""
        return self.revenue_pico - self.charged.cost_pico


class HourOfDay(NamedTuple):
    """One hour of the day (UTC) over all days."""

    hour: int
    paid_gpu_ms: Fraction
    busy_gpu_ms: Fraction
    """Of requests that arrived in it; not cut to what was paid."""

    @property
    def utilisation(self) -> Fraction | None:
        """None where nothing was paid for."""
        return self.busy_gpu_ms / self.paid_gpu_ms if self.paid_gpu_ms else None


class TokenCosts(NamedTuple):
    """Pico-units; None where there is nothing to divide by."""

    request: int | None
    million_tokens: int | None
    """In and out together."""
    million_output_all: int | None
    """With the whole cost on the output."""
    million_prompt: int | None
    """Prefill alone, over all prompt tokens, cached or not."""
    million_uncached: int | None
    """Prefill alone, over what an engine had to compute."""
    million_output: int | None
    """Decode and KV."""


class UnitCost(NamedTuple):
    """`groups` and `idle_pico` sum to `bill_pico` exactly."""

    costs: Costs
    model: StepModel
    step_ms: Fraction
    bill_pico: int
    idle_pico: int
    paid_gpu_ms: int
    busy_gpu_ms: Fraction
    over_spans: int
    groups: tuple[GroupCost, ...]
    hours: tuple[HourOfDay, ...]
    at_full_use: TokenCosts
    now: TokenCosts
    """At this utilisation: with the idle time."""
    comparisons: tuple[Comparison, ...]

    @property
    def busy_pico(self) -> int:
        """What the work was charged: the cost of the same requests at full use."""
        return self.bill_pico - self.idle_pico

    @property
    def utilisation(self) -> Fraction:
        """Worked of paid GPU time: 1 is a fleet that is at its knee all day."""
        return self.busy_gpu_ms / self.paid_gpu_ms if self.paid_gpu_ms else Fraction(0)


def unit_cost(
    *,
    costs: Costs,
    model: StepModel,
    paid: PaidTime,
    cells: Sequence[Cell],
    hours: Mapping[int, EngineWork],
    sold: Sequence[Sold],
    hosted: Mapping[str, Mapping[str, HostedRate]],
) -> UnitCost:
    """Put it together. Raises NothingPaid, NoHostedPrice."""
    step_ms = model.step_of(total_work(cell.work for cell in cells))
    units = model.units(step_ms)
    bill = bill_pico(
        paid.gpu_ms,
        price_per_gpu_hour_pico=costs.price_per_gpu_hour_pico,
        operations_pico=costs.operations_pico,
    )
    found = allocate(bill, paid.spans, cells, units)
    groups = _groups(found.charged, found.idle_pico, sold, costs.currency)
    total = _total(groups)
    uncached = sum(cell.work.uncached_tokens for cell in cells)
    busy_pico = bill - found.idle_pico
    pool = PoolCost(bill, busy_pico, costs.operations_pico, paid.gpu_ms, _tokens(sold))
    return UnitCost(
        costs=costs,
        model=model,
        step_ms=step_ms,
        bill_pico=bill,
        idle_pico=found.idle_pico,
        paid_gpu_ms=paid.gpu_ms,
        busy_gpu_ms=found.busy_gpu_ms,
        over_spans=found.over_spans,
        groups=groups,
        hours=tuple(
            HourOfDay(hour, gpu_ms, units.gpu_ms(units.of(hours.get(hour, EngineWork())).total))
            for hour, gpu_ms in enumerate(paid.by_hour)
        ),
        at_full_use=_token_costs(total, uncached, Fraction(1)),
        now=_token_costs(total, uncached, Fraction(bill, busy_pico) if busy_pico else None),
        comparisons=tuple(compare(name, rates, pool) for name, rates in hosted.items()),
    )


def _groups(
    charged: Mapping[str, Charged], idle_pico: int, sold: Iterable[Sold], currency: str
) -> tuple[GroupCost, ...]:
    of_group: defaultdict[str, list[Sold]] = defaultdict(list)
    for each in sold:
        of_group[each.group].append(each)
    names = sorted({*charged, *of_group})
    costs = [charged.get(name, Charged()) for name in names]
    weights = [each.cost_pico for each in costs]
    idle = largest_remainder(idle_pico, weights) if any(weights) else (0,) * len(names)
    return tuple(
        _group(name, cost, share, of_group[name], currency)
        for name, cost, share in zip(names, costs, idle, strict=True)
    )


def _group(
    name: str, charged: Charged, idle_share: int, sold: Sequence[Sold], currency: str
) -> GroupCost:
    revenue: defaultdict[str, int] = defaultdict(int)
    for each in sold:
        if each.currency is not None:
            revenue[each.currency] += each.cost_pico
    own = revenue.pop(currency, 0)
    return GroupCost(
        group=name,
        requests=sum(each.requests for each in sold),
        prompt_tokens=sum(each.prompt_tokens for each in sold),
        cached_prompt_tokens=sum(each.cached_prompt_tokens for each in sold),
        output_tokens=sum(each.output_tokens for each in sold),
        charged=charged,
        idle_share_pico=idle_share,
        revenue_pico=own,
        other_revenue_pico=dict(sorted(revenue.items())),
        unpriced_requests=sum(each.unpriced_requests for each in sold),
    )


class _Total(NamedTuple):
    requests: int
    prompt_tokens: int
    output_tokens: int
    charged: Charged


def _total(groups: Iterable[GroupCost]) -> _Total:
    total = _Total(0, 0, 0, Charged())
    for each in groups:
        total = _Total(
            total.requests + each.requests,
            total.prompt_tokens + each.prompt_tokens,
            total.output_tokens + each.output_tokens,
            total.charged.plus(each.charged),
        )
    return total


def _token_costs(total: _Total, uncached_tokens: int, factor: Fraction | None) -> TokenCosts:
    """`factor` is what a busy hour costs with the idle time that it has to bear; None where no
    work bears any."""

    def each(pico: int, count: int, *, per: int = MILLION) -> int | None:
        return half_up(pico * factor * per / count) if count and factor is not None else None

    charged, all_of_it = total.charged, total.charged.cost_pico
    return TokenCosts(
        request=each(all_of_it, total.requests, per=1),
        million_tokens=each(all_of_it, total.prompt_tokens + total.output_tokens),
        million_output_all=each(all_of_it, total.output_tokens),
        million_prompt=each(charged.prefill_pico, total.prompt_tokens),
        million_uncached=each(charged.prefill_pico, uncached_tokens),
        million_output=each(charged.decode_pico + charged.kv_pico, total.output_tokens),
    )


def _tokens(sold: Iterable[Sold]) -> dict[str, tuple[int, int]]:
    found: defaultdict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for each in sold:
        prompt, output = found[each.model]
        found[each.model] = (prompt + each.prompt_tokens, output + each.output_tokens)
    return dict(found)
