"""How single requests are shown, to whom what: money to those who may see it, and what serves
requests to those who run it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from billing.domain.money import show_amount
from billing.domain.usage_record import UsageAttempt, UsageRecord
from billing.postgres.rate_later import RATED_LATER
from billing.postgres.request_life import AttemptRow, EndedRequest, InvoiceOf, units_of
from billing.postgres.request_list import RequestPage
from billing.postgres.usage_records import UsageRow
from gateway.adapters.request_story import Underway
from gateway.administration.views import View, price_view
from gateway.domain.instants import ms_of, shown

_USD = "USD"


@dataclass(frozen=True)
class Sight:
    """What whoever asks may see beside the request itself."""

    money: bool
    operation: bool
    """Workers, providers and gateways."""


def page_of_requests(page: RequestPage, sight: Sight) -> View:
    """A page of the list."""
    return {
        "items": [_summary(record, sight) for record in page.records],
        "next_cursor": page.next_cursor,
        "looked_through": _at(page.looked_through),
    }


def _summary(record: UsageRow, sight: Sight) -> View:
    return {
        "id": str(record.request_id),
        "tenant_id": record.tenant_id,
        "api_key_id": record.api_key_id,
        "model": record.model,
        "class": record.request_class,
        "arrived_at": _at(record.admitted_at),
        "ended_at": _at(record.ended_at),
        "queued_ms": record.queue_ms,
        "ttft_ms": record.ttft_ms,
        "tpot_us": record.tpot_us,
        "outcome": record.outcome,
        "finish_reason": record.finish_reason,
        "final": record.final,
        "tokens": _tokens(record),
        "provider": record.provider if sight.operation else None,
        "worker_id": record.worker_id if sight.operation else None,
        "attempts": record.attempts,
        "billable": record.billable,
        "currency": record.currency if sight.money else None,
        "cost": _amount(record.cost_pico, record.currency) if sight.money else None,
    }


def life_view(found: EndedRequest | Underway, sight: Sight) -> View:
    """The life of a request, as far as it is known."""
    if isinstance(found, EndedRequest):
        return ended_view(found, sight)
    return underway_view(found, sight)


def ended_view(ended: EndedRequest, sight: Sight) -> View:
    """A request that Postgres has."""
    record = ended.record
    journal = None
    if ended.boot is not None:
        journal = {"gateway_id": ended.gateway_id, "boot": ended.boot, "seq": ended.seq}
    return {
        **_life(record, sight),
        "state": "ended",
        "known_from": "record",
        "accounted_by": _accounted_by(ended),
        "arrived_at": _at(record.admitted_at),
        "first_token_at": _at(record.first_token_at),
        "ended_at": _at(record.ended_at),
        "recorded_at": _at(ended.recorded_at),
        "came_late": ended.came_late,
        "gateway_id": ended.gateway_id if sight.operation else None,
        "journal": journal if sight.operation else None,
        "attempts": [_attempt(each, sight) for each in ended.attempts] if sight.operation else None,
        "money": _money(ended) if sight.money else None,
    }


def underway_view(underway: Underway, sight: Sight) -> View:
    """A request that Postgres does not have yet."""
    body = underway.body
    gateway_id = underway.gateway_id if sight.operation else None
    if isinstance(body, UsageRecord):
        attempts = [_attempt(each, sight) for each in body.attempts]
        return {
            **_life(body, sight),
            "state": "ended",
            "known_from": "copy",
            "accounted_by": None,
            "arrived_at": shown(body.admitted_at_ms),
            "first_token_at": shown(body.first_token_at_ms),
            "ended_at": shown(body.ended_at_ms),
            "recorded_at": None,
            "came_late": False,
            "gateway_id": gateway_id,
            "journal": None,
            "attempts": attempts if sight.operation else None,
            "money": None,
        }
    unknown = dict.fromkeys(
        (
            "accounted_by", "first_token_at", "ended_at", "recorded_at", "ttft_ms", "tpot_us",
            "longest_gap_us", "outcome", "finish_reason", "usage_source", "billable",
            "billing_policy", "provider", "worker_id", "journal", "attempts", "money",
        )
    )  # fmt: skip
    return {
        **unknown,
        "id": str(body.request_id),
        "state": "lost" if underway.gateway_is_gone else "running",
        "known_from": "copy",
        "tenant_id": body.tenant_id,
        "api_key_id": body.api_key_id,
        "model": body.model,
        "class": body.request_class,
        "sequences": body.sequences,
        "arrived_at": shown(body.admitted_at_ms),
        "queued_ms": body.queue_ms,
        "tokens": {
            "prompt": underway.prompt_tokens,
            "cached_prompt": 0,
            "output": underway.output_tokens,
            "reasoning": 0,
        },
        "usage_flags": [],
        "final": False,
        "came_late": False,
        "gateway_id": gateway_id,
    }


def _life(record: UsageRow | UsageRecord, sight: Sight) -> View:
    """What a row and a record say in the same words."""
    return {
        "id": str(record.request_id),
        "tenant_id": record.tenant_id,
        "api_key_id": record.api_key_id,
        "model": record.model,
        "class": record.request_class,
        "sequences": record.sequences,
        "queued_ms": record.queue_ms,
        "ttft_ms": record.ttft_ms,
        "tpot_us": record.tpot_us,
        "longest_gap_us": record.itl_max_us,
        "outcome": str(record.outcome),
        "finish_reason": record.finish_reason,
        "tokens": _tokens(record),
        "usage_source": str(record.usage_source),
        "usage_flags": list(record.usage_flags),
        "final": record.final,
        "billable": record.billable,
        "billing_policy": record.billing_policy,
        "provider": record.provider if sight.operation else None,
        "worker_id": record.worker_id if sight.operation else None,
    }


def _tokens(record: UsageRow | UsageRecord) -> View:
    return {
        "prompt": record.prompt_tokens,
        "cached_prompt": record.cached_prompt_tokens,
        "output": record.output_tokens,
        "reasoning": record.reasoning_tokens,
    }


def _accounted_by(ended: EndedRequest) -> str:
    if ended.is_provisional or ended.came_late:
        return "reaper"
    return "gateway" if ended.boot is None else "journal"


def _attempt(attempt: AttemptRow | UsageAttempt, sight: Sight) -> View:
    began, over = (
        (_at(attempt.started_at), _at(attempt.ended_at))
        if isinstance(attempt, AttemptRow)
        else (shown(attempt.started_at_ms), shown(attempt.ended_at_ms))
    )
    source = attempt.usage_source
    return {
        "attempt": attempt.attempt,
        "choice": attempt.choice,
        "worker_id": attempt.worker_id,
        "provider": attempt.provider,
        "began_at": began,
        "ended_at": over,
        "outcome": str(attempt.outcome),
        "prompt_tokens": attempt.prompt_tokens,
        "cached_prompt_tokens": attempt.cached_prompt_tokens,
        "output_tokens": attempt.output_tokens,
        "usage_source": None if source is None else str(source),
        "provider_request_id": attempt.provider_request_id,
        "provider_cost": _amount(attempt.provider_cost_pico, _USD) if sight.money else None,
    }


def _money(ended: EndedRequest) -> View:
    record = ended.record
    rated = "never" if record.price_id is None else "at_end"
    if RATED_LATER in record.usage_flags:
        rated = "later"
    return {
        "currency": record.currency,
        "cost": _amount(record.cost_pico, record.currency),
        "list_cost": _amount(record.list_cost_pico, record.currency),
        "rated": rated,
        "price": None if ended.price is None else price_view(ended.price),
        "invoice": None if ended.invoice is None else _invoice(ended.invoice, record),
    }


def _invoice(invoice: InvoiceOf, record: UsageRow) -> View:
    own = units_of(record)
    return {
        "id": str(invoice.id),
        "number": invoice.number,
        "month": invoice.month,
        "status": invoice.status,
        "lines": [
            {
                "position": line.position,
                "kind": line.kind,
                "unit": line.unit,
                "quantity": own[line.unit],
                "line_quantity": line.quantity,
            }
            for line in invoice.lines
        ],
    }


def _amount(pico: int | None, currency: str | None) -> str | None:
    return None if pico is None or currency is None else show_amount(pico, currency)


def _at(instant: datetime | None) -> Any:
    return shown(ms_of(instant))
