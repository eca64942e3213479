"""Sends the spans of kept traces to a collector by OTLP over HTTP.

Whoever has a trace hands it over and goes on: it is put in a bounded queue, and encoded and sent by
a thread of OpenTelemetry's own. A collector that is away, slow or failing costs spans, which are
counted, and is told of in the log once, and once when it takes them again.
"""

import asyncio
import contextlib
import logging
import threading
from collections.abc import Sequence
from concurrent.futures import Future

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from gateway.telemetry import traces as metrics
from gateway.telemetry.collector_session import CollectorSession
from gateway.telemetry.collectors import Taken
from gateway.telemetry.tracing import SpanData

SPANS_MAX = 8_192
"""So many wait to be sent or are under way, some 15 MB; a trace that finds no room is dropped
whole."""
BATCH_MAX = 512
DELAY_MS = 2_000
"""A span waits no longer for others."""
TIMEOUT_S = 10.0
"""For one batch to be taken, tries that failed included."""
CLOSE_S = 2.0
"""A stop waits for so long for what is still to be sent."""
_SAMPLED = TraceFlags(TraceFlags.SAMPLED)
_KINDS = {"server": SpanKind.SERVER, "client": SpanKind.CLIENT, "internal": SpanKind.INTERNAL}
_OK, _FAILED = Status(StatusCode.UNSET), Status(StatusCode.ERROR)
_log = logging.getLogger(__name__)


class SpanExport:
    """The way of one gateway's spans to its collector."""

    def __init__(
        self,
        url: str,
        resource: Resource,
        *,
        timeout_s: float = TIMEOUT_S,
        delay_ms: int = DELAY_MS,
        spans_max: int = SPANS_MAX,
    ) -> None:
        """Its thread runs from now on. Headers, certificates and compression are the exporter's to
        read from the environment."""
        session = CollectorSession(ExportTraceServiceResponse, "rejected_spans", timeout_s)
        exporter = OTLPSpanExporter(endpoint=url, timeout=timeout_s, session=session)
        self._counted = _Counted(exporter, session)
        self._processor = BatchSpanProcessor(
            self._counted,
            max_queue_size=spans_max,
            schedule_delay_millis=delay_ms,
            max_export_batch_size=min(BATCH_MAX, spans_max),
        )
        self._spans_max = spans_max
        self._resource = resource
        self._scope = InstrumentationScope("weir")
        self._handed = 0

    def __call__(self, spans: Sequence[SpanData]) -> None:
        """Take the spans of one trace, or drop and count them where too many wait."""
        if self._handed - self._counted.done + len(spans) > self._spans_max:
            metrics.SPANS.labels(result="dropped").inc(len(spans))
            return
        self._handed += len(spans)
        for span in spans:
            self._processor.on_end(readable(span, self._resource, self._scope))

    async def close(self, *, within_s: float = CLOSE_S) -> None:
        """Send what waits, for so long at most; what is left then is lost."""
        done: Future[None] = Future()

        def finish() -> None:
            self._processor.shutdown()  # type: ignore[no-untyped-call]
            with contextlib.suppress(Exception):  # who waited may have gone
                done.set_result(None)

        threading.Thread(target=finish, name="spans-close", daemon=True).start()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await asyncio.wrap_future(done)
        # Ends a wait between two tries; what is still under way ends with the process.
        self._counted.shutdown()


class _Counted(SpanExporter):
    """The exporter, with what becomes of each span counted. Called by the thread alone."""

    def __init__(self, exporter: SpanExporter, session: CollectorSession) -> None:
        self._exporter = exporter
        self._session = session
        self._taken = Taken("traces")
        self._failing = False
        self._ended = False
        self.done = 0
        """Spans that it is through with, whether or not they were taken."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send one batch. Does not raise."""
        result = SpanExportResult.FAILURE
        with contextlib.suppress(Exception):  # counted and told below, as any other failure
            result = self._exporter.export(spans)
        self.done += len(spans)
        failed = len(spans)
        if result is SpanExportResult.SUCCESS:
            failed = min(failed, self._session.rejected)
        metrics.SPANS.labels(result="exported").inc(len(spans) - failed)
        metrics.SPANS.labels(result="failed").inc(failed)
        taken = failed == 0
        if taken:
            self._taken.now()
        if taken is self._failing:
            self._failing = not taken
            if taken:
                _log.info("traces: the collector takes them again")
            else:
                why = self._session.why_not or "nothing was sent"
                _log.warning("traces: the collector does not take them (%s); requests go on", why)
        return result

    def shutdown(self) -> None:
        """Send no more. Harmless twice."""
        if not self._ended:
            self._ended = True
            self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Nothing waits here."""
        return True


def readable(span: SpanData, resource: Resource, scope: InstrumentationScope) -> ReadableSpan:
    """As the exporter reads it. It is made as it is, and by no tracer: its ids and times were
    decided while the request ran."""
    parent = None
    if span.parent_id is not None:
        parent = SpanContext(
            span.trace_id, span.parent_id, is_remote=span.parent_is_remote, trace_flags=_SAMPLED
        )
    links = []
    if span.link is not None:
        links.append(Link(SpanContext(span.link.trace_id, span.link.span_id, is_remote=True)))
    return ReadableSpan(
        span.name,
        SpanContext(span.trace_id, span.span_id, is_remote=False, trace_flags=_SAMPLED),
        parent,
        resource,
        span.attributes,
        links=links,
        kind=_KINDS[span.kind],
        status=_FAILED if span.failed else _OK,
        start_time=span.began_ns,
        end_time=span.ended_ns,
        instrumentation_scope=scope,
    )
