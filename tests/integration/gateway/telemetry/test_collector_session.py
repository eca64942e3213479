"""A collector that answers, and yet has not taken what it was sent."""

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from log_capture import logging_to
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsPartialSuccess,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceResponse,
)
from opentelemetry.sdk.resources import Resource
from prometheus_client import CollectorRegistry, Counter

from gateway.telemetry.collectors import SINCE_TAKEN
from gateway.telemetry.metrics_push import MetricsPush
from gateway.telemetry.trace_export import SpanExport
from gateway.telemetry.traces import SPANS
from gateway.telemetry.tracing import SpanData

RESOURCE = Resource({"service.instance.id": "g-1"})
SPAN = SpanData("POST /v1/completions", "server", 1, 2, None, False, 1_000, 3_000, {}, False)
DRIP_S = 0.05
TIMEOUT_S = 0.5


@contextmanager
def answering(kind: str, body: bytes = b"") -> Iterator[str]:
    """A collector that answers with a body, a redirect to a page that is there, or with a body or
    a head that never ends; its URL."""
    over = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            if kind == "redirect":
                self.send_response(302)
                self.send_header("location", "/there")
                self.send_header("content-length", "0")
                self.end_headers()
            elif kind == "endless head":
                self.wfile.write(b"HTTP/1.1 200 OK\r\nx: ")
                self._drip()
            else:
                self.send_response(200)
                self.send_header("content-type", "application/x-protobuf")
                endless = kind == "endless body"
                self.send_header("content-length", str(10_000 if endless else len(body)))
                self.end_headers()
                self.wfile.write(body)
                if endless:
                    self._drip()

        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def _drip(self) -> None:
            try:
                while not over.wait(DRIP_S):
                    self.wfile.write(b"x")
                    self.wfile.flush()
            except OSError:
                self.close_connection = True

        def log_message(self, *arguments: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/v1/x"
        finally:
            over.set()
            server.shutdown()
            thread.join()


async def pushed(url: str) -> tuple[bool, str]:
    """Whether a push of one counter was taken, and what the log says."""
    registry = CollectorRegistry()
    Counter("weir_x_total", "Of what.", registry=registry)

    async def refresh() -> None:
        pass

    push = MetricsPush(url, RESOURCE, refresh, period_ms=10, timeout_s=TIMEOUT_S, registry=registry)
    with logging_to() as log:
        async with asyncio.timeout(10):
            return await push.push(), log.getvalue()


async def exported(url: str, spans: int) -> tuple[dict[str, int], str]:
    """What became of spans that were sent, and what the log says."""

    def counted() -> dict[str, int]:
        return {each: int(SPANS.labels(each)._value.get()) for each in ("exported", "failed")}

    before = counted()
    with logging_to() as log:
        export = SpanExport(url, RESOURCE, timeout_s=TIMEOUT_S, delay_ms=20)
        export([SPAN] * spans)
        deadline = time.monotonic() + 10
        while sum(counted().values()) - sum(before.values()) < spans:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.01)
        await export.close()
    return {each: count - before[each] for each, count in counted().items()}, log.getvalue()


@pytest.mark.parametrize(
    ("kind", "why"),
    [("redirect", "status 302"), ("endless body", "Timeout"), ("endless head", "Timeout")],
)
async def test_what_is_no_yes_in_time_is_a_failure(kind: str, why: str) -> None:
    """It is counted, and told of with what it was."""
    with answering(kind) as url:
        taken, log = await pushed(url)
        assert not taken
        assert f"({why})" in log
        became, log = await exported(url, 3)
    assert became == {"exported": 0, "failed": 3}
    assert f"({why})" in log


async def test_what_the_collector_rejects_is_not_counted_as_taken() -> None:
    """Though it answers 200."""
    partly = ExportTraceServiceResponse(
        partial_success=ExportTracePartialSuccess(rejected_spans=2, error_message="own words")
    )
    with answering("body", partly.SerializeToString()) as url:
        became, log = await exported(url, 3)
    assert became == {"exported": 1, "failed": 2}
    assert "(2 rejected)" in log
    assert "own words" not in log
    points = ExportMetricsServiceResponse(
        partial_success=ExportMetricsPartialSuccess(rejected_data_points=1)
    )
    with answering("body", points.SerializeToString()) as url:
        taken, log = await pushed(url)
    assert not taken
    assert "(1 rejected)" in log


async def test_what_is_taken_is_remembered() -> None:
    """By how long ago it was, which is read when it is asked for."""
    with answering("body") as url:
        taken, log = await pushed(url)
        assert taken
        became, _ = await exported(url, 3)
    assert became == {"exported": 3, "failed": 0}
    assert log == ""
    for signal in ("metrics", "traces"):
        (sample,) = SINCE_TAKEN.labels(signal)._child_samples()
        assert 0 <= sample.value < 10
