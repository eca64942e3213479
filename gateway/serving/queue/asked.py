"""What a request asks of its pool's queue, taken from the tenant's limits and the request."""

from collections.abc import Mapping
from dataclasses import dataclass

from gateway.domain.queue.fairness import weighted_tokens
from gateway.domain.queue.tickets import Band
from gateway.domain.tenant import RequestClass, waiting_of
from gateway.errors import InvalidRequest
from gateway.serving.asking import Asking
from gateway.serving.authenticate import Caller, request_class
from gateway.serving.estimate import Estimate
from gateway.telemetry.tracing import NO_TRACE, RequestTrace
from gateway.wire.request import CompletionRequest

MAX_WAIT_HEADER = b"x-weir-max-wait-ms"
_DIGITS_MAX = 15


@dataclass(frozen=True)
class QueueSettings:
    """What an operator configures of waiting. Durations in ms unless named otherwise."""

    batch_wait_ms: int = 600_000
    """Batch waits for so long; tenants' own `max_wait_ms` are for interactive."""
    hosted_after_ms: int = 800
    """An interactive request that may go to a hosted provider waits no longer for a worker: the
    interactive class's target of the time to the first token."""
    promote_permille: int = 750
    """Batch that has waited for this share of what it would wait goes before other batch."""
    renew_ms: int = 500
    """While something waits, or could be taken back."""
    renew_began_ms: int = 2_000
    """Of what is sending tokens. A place that nobody renews lapses after the store's `ttl_ms`."""
    looks_per_s: int = 50
    """At tenants' limits for parked requests, over all tenants of this gateway."""
    look_again_ms: int = 500
    """Between two looks at one tenant that nothing else asked for."""


@dataclass(frozen=True)
class PlaceAsked:
    """One request as the queue of its pool sees it."""

    id: str
    pool: str
    """Its name (`gateway.domain.pools`)."""
    tenant: str
    key: str
    """The API key: requests of one key and model have the same limits."""
    band: Band
    sequences: int
    need_tokens: int
    """KV tokens that it is expected to come to hold: prompts and output of all sequences."""
    cost: int
    """Weighted tokens that it is expected to cost (`fairness.weighted_tokens`)."""
    weight: int
    max_queued: int
    """Of the tenant's requests may wait, this one not counted. 0: it does not wait."""
    wait_ms: int
    """It waits for no longer."""
    promote_after_ms: int
    is_new: bool = True
    """It did not wait before, and is refused where its deadline is predicted to pass."""
    trace: RequestTrace = NO_TRACE


@dataclass(frozen=True)
class Patience:
    """Whether and how long a request waits."""

    band: Band
    wait_ms: int
    max_queued: int
    """0: it does not wait."""


def patience(
    caller: Caller, request: CompletionRequest, headers: Mapping[bytes, bytes], batch_wait_ms: int
) -> Patience:
    """Of a request, by its class, its limits and `x-weir-max-wait-ms`. Where tenant and key both
    limit, the narrower holds; a key that does not leaves it at its tenant's. Raises InvalidRequest
    where the header is no number."""
    asked = request_class(caller, asked_batch=request.asked_batch)
    is_batch = asked is RequestClass.BATCH
    waiting = waiting_of(caller.tenant.limits, caller.key.limits)
    wait_ms = batch_wait_ms if is_batch else waiting.max_wait_ms
    shorter_ms = max_wait_ms(headers)
    if shorter_ms is not None:
        wait_ms = min(wait_ms, shorter_ms)
    return Patience(
        band=Band.BATCH if is_batch else Band.INTERACTIVE,
        wait_ms=wait_ms,
        max_queued=waiting.max_queued,
    )


def place_asked(asking: Asking, needs: Estimate, settings: QueueSettings) -> PlaceAsked:
    """What an estimated request asks. Raises InvalidRequest as `patience` does."""
    caller = asking.caller
    waits = patience(caller, asking.request, asking.arrival.headers, settings.batch_wait_ms)
    promote_after_ms = waits.wait_ms * settings.promote_permille // 1000
    return PlaceAsked(
        id=asking.arrival.request_id.hex,
        pool=asking.pool,
        tenant=caller.tenant.id,
        key=caller.key.id,
        band=waits.band,
        sequences=asking.request.sequences,
        need_tokens=needs.likely_prompt_tokens + needs.output_tokens,
        cost=max(
            1,
            weighted_tokens(
                uncached_prompt_tokens=needs.likely_prompt_tokens, output_tokens=needs.output_tokens
            ),
        ),
        weight=caller.tenant.limits.weight,
        max_queued=waits.max_queued,
        wait_ms=max(0, waits.wait_ms - asking.waited_ms),
        promote_after_ms=max(0, promote_after_ms - asking.waited_ms),
        trace=asking.arrival.trace,
    )


def max_wait_ms(headers: Mapping[bytes, bytes]) -> int | None:
    """What `x-weir-max-wait-ms` says, None where it is not sent. Raises InvalidRequest."""
    value = headers.get(MAX_WAIT_HEADER)
    if value is None:
        return None
    digits = value.strip()
    if not digits.isdigit() or len(digits) > _DIGITS_MAX:
        raise InvalidRequest(
            "x-weir-max-wait-ms must be a number of milliseconds", param="x-weir-max-wait-ms"
        )
    return int(digits)
