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
from gateway.telemetry.shares import Shares

LINES_PER_S = 50
"""Of failures, and as many of all others."""
DROPPED = Counter(
    "weir_log_lines_dropped_total",
    f"Lines about requests that were not written: beyond {LINES_PER_S} a second, or a share of it.",
)
_NO_FAILURE = (Outcome.COMPLETED, Outcome.CLIENT_CANCELLED)


class Bound:
    """So many lines in each second of those that are no failures, which nobody has to find room
    for; and shares of those that are."""

    def __init__(self) -> None:
        self._second = 0
        self._lines = 0
        self._faults = Shares(LINES_PER_S, lambda: time.monotonic_ns() // 1000)

    def allows(self, level: int, who: str | None, why: str) -> bool:
        """Whether one more may be written now, of this tenant and for this reason."""
        if level >= logging.WARNING:
            return self._faults.take(who, why)
        second = int(time.monotonic())
        if second != self._second:
            self._second, self._lines = second, 0
        self._lines += 1
        return self._lines <= LINES_PER_S


_bound = Bound()


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
    _write(level, "answered with an error", fields, context.tenant, code)


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
    _write(level, "request ended", fields, record.tenant_id, record.outcome.value)


def _write(level: int, message: str, fields: dict[str, object], who: str | None, why: str) -> None:
    if not _bound.allows(level, who, why):
        DROPPED.inc()
        return
    REQUESTS.log(level, message, extra={FIELDS: fields})
