"""Sends the metrics to a collector by OTLP over HTTP, now and then and once more at the end.

Nothing waits for it: the request is made and answered in a thread of its own. A collector that is
away, slow or failing is told once in the log and counted; the next push has all that this one had.
"""

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Awaitable, Callable

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceResponse,
)
from opentelemetry.sdk.metrics.export import MetricExportResult
from opentelemetry.sdk.resources import Resource
from prometheus_client import REGISTRY, CollectorRegistry, Counter
from prometheus_client.metrics_core import Metric as Family

from gateway.telemetry.collector_session import CollectorSession
from gateway.telemetry.collectors import Taken
from gateway.telemetry.logs import log_failure
from gateway.telemetry.otlp_metrics import metrics_data
from gateway.telemetry.reading import families_of

TIMEOUT_S = 5.0
LAST_PUSH_S = 2.0
"""A stop waits for the last push for so long at most."""
PUSHES = Counter(
    "weir_otlp_pushes_total",
    "Times that metrics were sent to the collector: taken, or failed.",
    ["result"],
)
for _result in ("taken", "failed"):
    PUSHES.labels(_result)
_log = logging.getLogger(__name__)


class MetricsPush:
    """Sends to one URL. `refresh` sets what is read rather than counted, before each push."""

    def __init__(
        self,
        url: str,
        resource: Resource,
        refresh: Callable[[], Awaitable[None]],
        *,
        period_ms: int,
        timeout_s: float = TIMEOUT_S,
        registry: CollectorRegistry = REGISTRY,
    ) -> None:
        self._session = CollectorSession(
            ExportMetricsServiceResponse, "rejected_data_points", timeout_s
        )
        self._exporter = OTLPMetricExporter(endpoint=url, timeout=timeout_s, session=self._session)
        self._last = Taken("metrics")
        self._resource = resource
        self._refresh = refresh
        self._period_s = period_ms / 1000
        self._registry = registry
        self._idle = asyncio.Event()
        self._idle.set()
        self._failing = False

    async def run(self) -> None:
        """Push each period, for ever."""
        while True:
            await asyncio.sleep(self._period_s)
            await self.push()

    async def close(self, *, within_s: float = LAST_PUSH_S) -> None:
        """Push once more, and wait for so long at most."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._idle.wait()
                await self.push()
        # Ends a wait between two tries; what is still under way ends with the process.
        self._exporter.shutdown()

    async def push(self) -> bool:
        """Whether the collector took them. Does not raise."""
        try:
            taken = await self._pushed()
        except Exception as error:  # noqa: BLE001 - told, and the next push is made all the same
            log_failure(_log, error, "metrics could not be sent")
            taken = False
        PUSHES.labels("taken" if taken else "failed").inc()
        if not taken and not self._failing:
            why = self._session.why_not or "nothing was sent"
            _log.warning("metrics: the collector does not take them (%s); they are counted on", why)
        if taken and self._failing:
            _log.info("metrics: the collector takes them again")
        if taken:
            self._last.now()
        self._failing = not taken
        return taken

    async def _pushed(self) -> bool:
        if not self._idle.is_set():
            return False
        await self._refresh()
        families = [family async for family in families_of(self._registry)]
        loop = asyncio.get_running_loop()
        sent: asyncio.Future[bool] = loop.create_future()
        self._idle.clear()
        threading.Thread(
            target=self._send, args=(families, loop, sent), name="metrics-push", daemon=True
        ).start()
        return await sent

    def _send(
        self,
        families: list[Family],
        loop: asyncio.AbstractEventLoop,
        sent: asyncio.Future[bool],
    ) -> None:
        """In a thread: whatever comes of it, the loop is told."""
        taken, failure = False, None
        try:
            data = metrics_data(families, self._resource, now_ns=time.time_ns())
            taken = self._exporter.export(data) is MetricExportResult.SUCCESS
            taken = taken and not self._session.rejected
        except Exception as error:  # noqa: BLE001 - raised again where it is waited for
            failure = error
        with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(self._ended, sent, taken, failure)

    def _ended(self, sent: asyncio.Future[bool], taken: bool, failure: Exception | None) -> None:
        self._idle.set()
        if sent.done():  # who waited has given up
            return
        if failure is None:
            sent.set_result(taken)
        else:
            sent.set_exception(failure)
