"""What traces cost a request: CPU of a gateway's process, without them, with steps that are noted
and thrown away, and with every trace kept and sent to a collector in a process of its own.

`PYTHONPATH=.:tests python benchmarks/tracing.py [--quick] [--requests 3000]` prints a table.
Requests go through the straight line on ports in memory, 20 tokens each, one after the other and
one of each way in turn. The quickest tenth is what other work on the machine disturbs least.
"""

import argparse
import asyncio
import gc
import multiprocessing
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from multiprocessing.connection import Connection
from typing import NamedTuple
from unittest import mock

import click
import engine_events as events
import uvloop
from memory_gateway import MemoryGateway
from memory_ports import StandingClock
from opentelemetry.sdk.resources import Resource
from prometheus_client import REGISTRY

from gateway.serving.tracing import NO_TRACING, Tracing
from gateway.telemetry.trace_export import SpanExport
from gateway.telemetry.trace_keeping import Keeping

WORDS = [f"word{number}" for number in range(20)]
WAYS = ("off", "noted", "kept")
SPANS_EACH = 14
DEADLINE_S = 30.0


class Costs(NamedTuple):
    """CPU, in µs."""

    requests: dict[str, list[float]]
    """Of the thread that serves, each request of each way."""
    export_us: float
    """Of the thread that encodes and sends, a trace."""


class _Collector(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *arguments: object) -> None:
        pass


def _collect(told: Connection) -> None:
    with HTTPServer(("127.0.0.1", 0), _Collector) as server:
        told.send(server.server_address[1])
        server.serve_forever()


@contextmanager
def collector() -> Iterator[str]:
    """The URL of one in a process of its own."""
    spawn = multiprocessing.get_context("spawn")
    mine, theirs = spawn.Pipe()
    process = spawn.Process(target=_collect, args=(theirs,), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{mine.recv()}/v1/traces"
    finally:
        process.terminate()
        process.join()


def tracing_of(way: str, clock: StandingClock, export: SpanExport) -> Tracing:
    """As the way has it."""
    if way == "off":
        return NO_TRACING
    ratio_permille = 1000 if way == "kept" else 0
    return Tracing(clock, Keeping(clock, ratio_permille=ratio_permille, kept_per_s=0), export)


def exported() -> float:
    """Spans that the collector has taken so far."""
    return REGISTRY.get_sample_value("weir_trace_spans_total", {"result": "exported"}) or 0


async def measured(requests: int) -> Costs:
    """One request of each way in turn, so many times: whatever else runs on the machine meets all
    of them alike."""
    found: dict[str, list[float]] = {way: [] for way in WAYS}
    with collector() as url, mock.patch.object(StandingClock, "monotonic_us", _now_us):
        export = SpanExport(url, Resource({"service.name": "benchmark"}), delay_ms=50)
        gateways = {way: MemoryGateway(*[events.answer(WORDS)] * requests) for way in WAYS}
        for way, gateway in gateways.items():
            tracing = tracing_of(way, gateway.clock, export)
            gateway.completions._tracing = tracing  # noqa: SLF001 - as its tests do
        gc.collect()
        gc.freeze()
        process_s, thread_s = time.process_time(), time.thread_time()
        for _ in range(requests):
            for way, gateway in gateways.items():
                began_ns = time.thread_time_ns()
                await gateway.post(stream=True, max_tokens=20)
                found[way].append((time.thread_time_ns() - began_ns) / 1e3)
        await _until_exported(requests * SPANS_EACH)
        beside_s = time.process_time() - process_s - (time.thread_time() - thread_s)
        await export.close()
    return Costs(found, beside_s / requests * 1e6)


async def _until_exported(spans: int) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while exported() < spans:
        if time.monotonic() > deadline:
            raise click.ClickException("the collector did not take all spans")
        await asyncio.sleep(0.02)


def _now_us(_: StandingClock) -> int:
    """What reading a clock costs is part of the cost."""
    return time.monotonic_ns() // 1000


def shown(found: Costs) -> Iterator[str]:
    """The table."""
    yield (
        "| traces | CPU µs a request, quickest tenth | median | added, quickest tenth | median | "
        "in the other thread |"
    )
    yield "| --- | --- | --- | --- | --- | --- |"
    tenths = {way: sorted(costs)[len(costs) // 10] for way, costs in found.requests.items()}
    medians = {way: statistics.median(costs) for way, costs in found.requests.items()}
    for way in WAYS:
        row = f"| {way} | {tenths[way]:.0f} | {medians[way]:.0f} "
        if way == "off":
            yield row + "| – | – | – |"
            continue
        beside = f"{found.export_us:.0f}" if way == "kept" else "–"
        added = f"{tenths[way] - tenths['off']:.0f} | {medians[way] - medians['off']:.0f}"
        yield f"{row}| {added} | {beside} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=3000)
    parser.add_argument("--quick", action="store_true", help="only see that it runs")
    asked = parser.parse_args()
    for line in shown(uvloop.run(measured(50 if asked.quick else asked.requests))):
        click.echo(line)


if __name__ == "__main__":
    main()
