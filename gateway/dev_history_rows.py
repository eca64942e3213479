"""A month of usage that nobody had, drawn as the load test's workloads are: prompts that share
prefixes, long tails, office hours, some that fail or are left. The same each time."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from random import Random
from typing import NamedTuple

from msgspec.structs import replace

from billing.domain.invoicing.periods import Month
from billing.domain.invoicing.simulated import SIMULATED
from billing.domain.policy import CURRENT_POLICY, is_billable
from billing.domain.usage_record import Outcome, UsageAttempt, UsageRecord, UsageSource
from gateway.domain.hosted import HostedPrice
from gateway.domain.request_id import request_id
from gateway.domain.tenant import ApiKey, Model, RequestClass

GATEWAY_ID = "history"
"""Of all these records: no gateway that ever ran."""
WORKER_ID = "history"
TEMPLATES = 400
BATCH_SHARE = 0.3
LATEST_END = timedelta(minutes=10)
"""None arrives later than so long before its month's end: all have ended by then."""
_ID_BITS = 74
_BLOCK = 64
"""Tokens that an engine's prefix cache has whole, or not."""


class Hosted(NamedTuple):
    """The provider that some were sent to, and what it charged."""

    name: str
    """As records have it, `hosted:<name>`."""
    price: HostedPrice
    keys: frozenset[str]
    """Ids of those of which prompts may go there."""


class _Shape(NamedTuple):
    prompt_tokens: int
    cached_prompt_tokens: int
    output_tokens: int


def history(
    month: Month,
    model: Model,
    keys: Sequence[ApiKey],
    *,
    requests: int,
    hosted: Hosted | None = None,
) -> Iterator[UsageRecord]:
    """So many requests of the tenant that has these keys, at least one, in the order of arrival,
    without their cost."""
    tenant_id = keys[0].tenant_id
    draw = Random(f"{tenant_id}/{model.id}/{month.name}/{month.time_zone}")  # noqa: S311 - usage, no secret
    prefixes = [_tokens(draw, 934, 0.7) for _ in range(TEMPLATES)]
    weights = list(accumulate(1 / rank for rank in range(1, TEMPLATES + 1)))
    seen: set[int] = set()
    for at_ms in sorted(_arrival_ms(draw, month) for _ in range(requests)):
        (template,) = draw.choices(range(TEMPLATES), cum_weights=weights)
        found = prefixes[template] if template in seen else 0
        seen.add(template)
        shape = _shape(draw, model, prefix=prefixes[template], found=found)
        yield _record(draw, at_ms, model, _key(draw, keys), shape, hosted=hosted)


def _arrival_ms(draw: Random, month: Month) -> int:
    """Drawn anew until it falls into hours that are busy enough: at night a quarter, at weekends
    half."""
    lasts_ms = (month.end - LATEST_END - month.start) // timedelta(milliseconds=1)
    while True:
        at = month.start + timedelta(milliseconds=draw.randrange(lasts_ms))
        busy = 1.0 if 7 <= at.hour < 19 else 0.25
        if at.weekday() >= 5:
            busy /= 2
        if draw.random() < busy:
            return (at - datetime.fromtimestamp(0, UTC)) // timedelta(milliseconds=1)


def _shape(draw: Random, model: Model, *, prefix: int, found: int) -> _Shape:
    output = min(_tokens(draw, 269, 0.9), model.max_output_tokens, model.context_tokens // 2)
    prompt = min(prefix + _tokens(draw, 354, 1.3), model.context_tokens - output)
    return _Shape(prompt, min(found, prompt - 1) // _BLOCK * _BLOCK, output)


def _tokens(draw: Random, median: int, sigma: float) -> int:
    return max(1, int(median * draw.lognormvariate(0, sigma)))


def _key(draw: Random, keys: Sequence[ApiKey]) -> ApiKey:
    wanted = RequestClass.BATCH if draw.random() < BATCH_SHARE else RequestClass.INTERACTIVE
    return draw.choice([key for key in keys if key.request_class is wanted] or keys)


def _record(
    draw: Random,
    at_ms: int,
    model: Model,
    key: ApiKey,
    shape: _Shape,
    *,
    hosted: Hosted | None,
) -> UsageRecord:
    outcome, source = Outcome.COMPLETED, UsageSource.ENGINE_FINAL
    prompt, cached, output = shape
    fate = draw.random()
    if fate < 0.04:
        outcome = Outcome.CLIENT_CANCELLED
        output = draw.randint(0, output)
    elif fate < 0.055:
        outcome, source = Outcome.WORKER_FAILED, UsageSource.ENGINE_PROGRESS
        output = draw.randint(0, output)
    elif fate < 0.06:
        outcome, output = Outcome.TIMED_OUT, 0
    leaves = draw.random() < 0.03
    elsewhere = hosted if hosted is not None and leaves and key.id in hosted.keys else None
    queue_ms = int(draw.expovariate(1 / 40))
    prefill_ms = 60 + (prompt - cached) // 8
    tpot_us = 14_000 + draw.randrange(6_000)
    started_ms = at_ms + queue_ms
    first_ms = started_ms + prefill_ms if output else None
    ended_ms = started_ms + prefill_ms + tpot_us * max(0, output - 1) // 1000
    record = UsageRecord(
        request_id=request_id(at_ms, draw.getrandbits(_ID_BITS)),
        tenant_id=key.tenant_id,
        api_key_id=key.id,
        model=model.id,
        request_class=key.request_class.value,
        admitted_at_ms=at_ms,
        ended_at_ms=ended_ms,
        first_token_at_ms=first_ms,
        prompt_tokens=prompt,
        cached_prompt_tokens=cached,
        output_tokens=output,
        queue_ms=queue_ms,
        ttft_ms=None if first_ms is None else first_ms - at_ms,
        tpot_us=tpot_us if output > 1 else None,
        itl_max_us=2 * tpot_us if output > 1 else None,
        outcome=outcome,
        finish_reason="stop" if outcome is Outcome.COMPLETED else None,
        usage_source=source,
        usage_flags=(SIMULATED,),
        provider="self" if elsewhere is None else elsewhere.name,
        worker_id=WORKER_ID if elsewhere is None else elsewhere.name,
        billable=is_billable(outcome, output),
        billing_policy=CURRENT_POLICY,
    )
    return replace(record, attempts=(_attempt(record, elsewhere),))


def _attempt(record: UsageRecord, hosted: Hosted | None) -> UsageAttempt:
    """The only one: what it used is what the request did."""
    provider_cost_pico = provider_request_id = None
    if hosted is not None:
        provider_request_id = f"{SIMULATED}-{record.request_id.hex}"
        provider_cost_pico = hosted.price.cost_pico(
            prompt_tokens=record.prompt_tokens,
            cached_tokens=record.cached_prompt_tokens,
            output_tokens=record.output_tokens,
        )
    return UsageAttempt(
        attempt=1,
        worker_id=record.worker_id or WORKER_ID,
        provider=record.provider,
        started_at_ms=record.admitted_at_ms + record.queue_ms,
        ended_at_ms=record.ended_at_ms,
        outcome=record.outcome,
        prompt_tokens=record.prompt_tokens,
        output_tokens=record.output_tokens,
        provider_request_id=provider_request_id,
        provider_cost_pico=provider_cost_pico,
        usage_source=record.usage_source,
        cached_prompt_tokens=record.cached_prompt_tokens,
    )
