"""One line about each request that failed, or about each request, as `WEIR_LOG_REQUESTS` has it.

What a client did itself (an answer of 400 to 499, a leave) is no failure: whoever has no key could
fill a disk with it. What is ours is a warning, and of a flood of these only so many are written.
"""

import logging
import time

from prometheus_client import Counter

from billing.domain.usage_record import Outcome, UsageRecord
from gateway.telemetry.log_context import current
from gateway.telemetry.log_lines import FIELDS
from gateway.telemetry.logs import REQUESTS

LINES_PER_S = 50
DROPPED = Counter(
    "weir_log_lines_dropped_total",
    f"Lines about requests that were not written, beyond {LINES_PER_S} a second.",
)
_NO_FAILURE = (Outcome.COMPLETED, Outcome.CLIENT_CANCELLED)


class _Bound:
    """So many lines in each second."""

    def __init__(self) -> None:
        self._second = 0
        self._lines = 0

    def allows(self) -> bool:
        """Whether one more may be written now."""
        second = int(time.monotonic())
        if second != self._second:
            self._second, self._lines = second, 0
        self._lines += 1
        return self._lines <= LINES_PER_S


_bound = _Bound()


def log_error_answer(status: int, code: str, *, is_fault: bool) -> None:
    """A request was answered with an error, or would have been; with whose it is and what model it
    asks for, as far as that is known."""
    level = logging.WARNING if is_fault else logging.INFO
    if not REQUESTS.isEnabledFor(level):
        return
    context = current()
    fields: dict[str, object] = {
        "status": status,
        "code": code,
        "tenant": context.tenant,
        "key": context.key,
        "model": context.model,
    }
    _write(level, "answered with an error", fields)


def log_ended(record: UsageRecord) -> None:
    """An admitted request ended."""
    level = logging.INFO if record.outcome in _NO_FAILURE else logging.WARNING
    if not REQUESTS.isEnabledFor(level):
        return
    fields: dict[str, object] = {
        "outcome": record.outcome.value,
        "model": record.model,
        "request_class": record.request_class,
        "provider": record.provider,
        "worker": record.worker_id,
        "tenant": record.tenant_id,
        "key": record.api_key_id,
        "prompt_tokens": record.prompt_tokens,
        "output_tokens": record.output_tokens,
        "queue_ms": record.queue_ms,
        "ttft_ms": record.ttft_ms,
        "duration_ms": record.ended_at_ms - record.admitted_at_ms,
        "attempts": len(record.attempts),
    }
    _write(level, "request ended", fields)


def _write(level: int, message: str, fields: dict[str, object]) -> None:
    if not _bound.allows():
        DROPPED.inc()
        return
    REQUESTS.log(level, message, extra={FIELDS: fields})
