"""Traces of requests: begun when one comes, and kept or thrown away when it has ended.

Of every request its steps are noted; spans are made of them only where the trace is kept: drawn by
lot when it came, or because of what became of it. Nothing here holds a request up or fails it.
"""

import logging
from collections.abc import Callable, Mapping, Sequence

from billing.domain.usage_record import Outcome, UsageAttempt, UsageRecord
from gateway.domain.latency import Targets
from gateway.domain.tenant import RequestClass
from gateway.serving.arrival import Arrival
from gateway.serving.authenticate import Caller
from gateway.serving.request_spans import spans_of
from gateway.telemetry import traces as metrics
from gateway.telemetry.logs import log_failure
from gateway.telemetry.trace_keeping import Keeping
from gateway.telemetry.tracing import NO_TRACE, RequestTrace, SpanData, TraceClock
from gateway.wire.traceparent import HEADER, read_traceparent

_FAULTS = {Outcome.WORKER_FAILED, Outcome.TIMED_OUT, Outcome.GATEWAY_LOST}
_log = logging.getLogger(__name__)


class Tracing:
    """The traces of one gateway."""

    def __init__(
        self,
        clock: TraceClock,
        keeping: Keeping,
        export: Callable[[Sequence[SpanData]], None],
        *,
        context: str = "continue",
        targets: Mapping[RequestClass, Targets] | None = None,
    ) -> None:
        """`export` takes a trace that is kept, and neither waits nor raises. `context` is
        `WEIR_TRACE_CONTEXT`; what is over the targets of its class is slow."""
        self._clock = clock
        self._keeping = keeping
        self._export = export
        self._context = context
        self._targets = targets or {}

    def begin(self, headers: Mapping[bytes, bytes], *, at_ms: int, at_us: int) -> RequestTrace:
        """The trace of a request that came at `at_ms` (Unix ms), `at_us` on the clock: one of our
        own until it is known who asks."""
        return RequestTrace(self._clock, at_ms=at_ms, at_us=at_us, sampled=self._keeping.draw())

    def join(self, trace: RequestTrace, headers: Mapping[bytes, bytes]) -> None:
        """Who asks has a key: take its context, as `WEIR_TRACE_CONTEXT` has it. Without a key
        nobody writes into a trace of somebody's."""
        value = headers.get(HEADER)
        if value is None or self._context == "ignore":
            return
        remote = read_traceparent(value)
        if remote is None:
            return
        if self._context == "continue":
            trace.go_on_with(remote)
        else:
            trace.link = remote

    def end(self, arrival: Arrival) -> None:
        """The request has ended: keep its trace, or not. Does not raise."""
        trace = arrival.trace
        try:
            kept = self._reason(trace, arrival)
            if kept is None:
                return
            metrics.KEPT.labels(reason=kept).inc()
            self._export(spans_of(trace, arrival, kept))
        except Exception as error:  # noqa: BLE001 - a bug of ours costs its trace, no request
            log_failure(_log, error, "the trace of request %s is lost", arrival.request_id)
        finally:
            trace.forget()

    def _reason(self, trace: RequestTrace, arrival: Arrival) -> str | None:
        if trace.sampled:
            return "ratio"
        reason = why_kept(trace, arrival.connection.status, self._targets)
        if reason is None:
            return None
        tenant = next((each.tenant.id for each in trace.results(Caller)), None)
        code = reason if trace.failure is None else trace.failure.code
        if self._keeping.may_keep(tenant, code):
            return reason
        metrics.NOT_KEPT.labels(reason=reason).inc()
        return None


class _NoTracing(Tracing):
    """Nothing is traced."""

    def __init__(self) -> None:
        pass

    def begin(self, headers: Mapping[bytes, bytes], *, at_ms: int, at_us: int) -> RequestTrace:
        """The same for all."""
        return NO_TRACE

    def join(self, trace: RequestTrace, headers: Mapping[bytes, bytes]) -> None:
        """Nothing."""

    def end(self, arrival: Arrival) -> None:
        """Nothing."""


NO_TRACING: Tracing = _NoTracing()
"""Where traces go nowhere."""


def why_kept(
    trace: RequestTrace, status: int | None, targets: Mapping[RequestClass, Targets]
) -> str | None:
    """Why a trace is worth keeping that was not drawn: it `failed`, `fell_back`, was `retried` or
    `slow`, the first of these that holds; else None. What a tenant does wrong, or has no room for
    in its own limits, is no failure here, nor is a wait that it cut short: it could ask for any
    number of them."""
    is_ours = trace.failure is None or trace.failure.is_fault
    if status is not None and status >= 500 and is_ours:
        return "failed"
    records = trace.results(UsageRecord)
    if not records:
        return "failed" if trace.failure is not None and trace.failure.is_fault else None
    record = records[0]
    if record.outcome in _FAULTS:
        return "failed"
    if any(attempt.provider != "self" for attempt in record.attempts):
        return "fell_back"
    if _was_retried(record.attempts):
        return "retried"
    return "slow" if _was_slow(record, targets.get(RequestClass(record.request_class))) else None


def _was_retried(attempts: Sequence[UsageAttempt]) -> bool:
    """Batch that gave its place back is tried again too, by design and often."""
    tried = [each.choice for each in attempts if each.outcome is not Outcome.TAKEN_BACK]
    return len(tried) > len(set(tried))


def _was_slow(record: UsageRecord, targets: Targets | None) -> bool:
    if targets is None:
        return False
    if record.ttft_ms is not None and record.ttft_ms > targets.ttft_ms:
        return True
    return record.tpot_us is not None and record.tpot_us > targets.tpot_ms * 1000
