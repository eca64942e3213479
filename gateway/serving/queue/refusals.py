"""What is told to a request that gets no place.

- *429, type `queue`*: the tenant has as many waiting as it may.
- *503 `no_capacity`*: the pool cannot serve it in time, as predicted or as it turned out.
- *503 `no_worker`*: no worker of the pool is there.
- *503 `admission_unavailable`*: the store of the queue does not answer.
- *429 of the limit itself*: parked for a limit of its tenant until its wait was over.
"""

from asyncio import CancelledError

from gateway.domain.pools import model_of
from gateway.errors import LimitReached, Overloaded
from gateway.serving.ports import ClientGone

_CODES = {
    "admission_unavailable": "store_away",
    "no_capacity": "shutting_down",
    "no_worker": "no_worker",
}
RETRY_MS = 1_000
"""Where nothing is predicted."""
RETRY_MS_MAX = 60_000


class WaitTooLong(Overloaded):
    """503 `no_capacity`: no place in time. `wait_ms` is the wait that was predicted, None where
    nothing is known of the pool's speed."""

    def __init__(
        self, message: str, *, reason: str, wait_ms: int | None, retry_after_ms: int = RETRY_MS
    ) -> None:
        super().__init__(message, code="no_capacity", retry_after_ms=bounded(retry_after_ms))
        self.reason = reason
        """As the metric `weir_queue_refusals_total` has it."""
        self.wait_ms = wait_ms


class WorkersGone(Overloaded):
    """503 `no_worker`: there is none of the pool that could take it."""

    def __init__(self, pool: str) -> None:
        super().__init__(
            f"no worker of {model_of(pool)} is ready", code="no_worker", retry_after_ms=RETRY_MS
        )


def bounded(retry_after_ms: int) -> int:
    """As `retry-after-ms` may be."""
    return min(RETRY_MS_MAX, max(1, retry_after_ms))


def queue_full(waiting: int, max_queued: int, retry_after_ms: int | None) -> LimitReached:
    """The tenant has as many waiting as it may. `retry_after_ms` is until the first of them is
    expected to be granted, None where nobody knows."""
    return LimitReached(
        f"the limit of the tenant is {max_queued} requests that wait: {waiting} do",
        kind="queue",
        retry_after_ms=bounded(max(RETRY_MS, retry_after_ms or 0)),
    )


def no_place_now() -> WaitTooLong:
    """Of a request that does not wait (`max_queued` 0)."""
    return WaitTooLong("all workers of this model are busy", reason="no_place", wait_ms=None)


def too_long(wait_ms: int, may_wait_ms: int) -> WaitTooLong:
    """The predicted wait is longer than it may wait. It would be let wait once the prediction is
    short enough."""
    return WaitTooLong(
        f"all workers of this model are busy: the wait would be about {wait_ms} ms, "
        f"this request waits for at most {may_wait_ms} ms",
        reason="predicted",
        wait_ms=wait_ms,
        retry_after_ms=max(RETRY_MS, wait_ms - may_wait_ms),
    )


def wait_over(waited_ms: int, wait_ms: int | None) -> WaitTooLong:
    """It has waited for as long as it may; `wait_ms` is what is still predicted."""
    return WaitTooLong(
        f"all workers of this model are busy: no place within {waited_ms} ms",
        reason="wait_over",
        wait_ms=wait_ms,
        retry_after_ms=max(RETRY_MS, wait_ms or 0),
    )


def store_away() -> Overloaded:
    """Nobody can tell whose turn it is."""
    return Overloaded(
        "the queue cannot be reached at the moment",
        code="admission_unavailable",
        retry_after_ms=RETRY_MS,
    )


def shutting_down() -> Overloaded:
    """This gateway goes down; others serve."""
    return Overloaded("the gateway is shutting down", code="no_capacity", retry_after_ms=RETRY_MS)


def aged(refused: LimitReached, by_ms: int) -> LimitReached:
    """A limit's refusal as it is told so much later."""
    if refused.retry_after_ms is not None:
        left_ms = refused.retry_after_ms - by_ms
        refused.retry_after_ms = bounded(left_ms if left_ms > 0 else RETRY_MS)
    return refused


def of_another(refused: LimitReached) -> LimitReached:
    """What an earlier request was refused with, for one of the same limits that is behind it."""
    same = LimitReached(
        refused.message, kind=refused.type, retry_after_ms=refused.retry_after_ms or RETRY_MS
    )
    same.headers, same.rests_on_tokens = refused.headers, refused.rests_on_tokens
    same.of_key = refused.of_key
    return same


def reason_of(error: BaseException) -> str | None:
    """Why it got no place, as a metric's label; None where that was for another reason."""
    if isinstance(error, WaitTooLong):
        return error.reason
    if isinstance(error, LimitReached):
        return "queue_full" if error.type == "queue" else "limit"
    if isinstance(error, ClientGone):
        return "client_left"
    if isinstance(error, CancelledError):
        return "cancelled"
    return _CODES.get(error.code) if isinstance(error, Overloaded) else None
