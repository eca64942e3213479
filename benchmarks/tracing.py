"""What traces cost a request: CPU of the gateway's process, without them, with steps that are noted
and thrown away, and with every trace kept and sent to a collector in a process of its own.

`PYTHONPATH=.:tests python benchmarks/tracing.py [--quick] [--requests 200] [--rounds 30]` prints a
table. Requests go through the straight line on ports in memory, 20 tokens each, one after the
other, in short rounds of each way in turn; *added* is the median of the rounds' differences from
the round without. The process's CPU has the thread that encodes and sends.
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


class Cost(NamedTuple):
    """Of one request, in µs of CPU."""

    process_us: float
    loop_us: float
    """Of the thread that serves."""


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


async def one_round(way: str, requests: int, export: SpanExport) -> Cost:
    """So many requests on a fresh gateway, their spans sent by the end."""
    gateway = MemoryGateway(*[events.answer(WORDS)] * requests)
    tracing = tracing_of(way, gateway.clock, export)
    gateway.completions._tracing = tracing  # noqa: SLF001 - as its tests do
    gc.collect()
    expected = exported() + (requests * SPANS_EACH if way == "kept" else 0)
    process_s, loop_s = time.process_time(), time.thread_time()
    for _ in range(requests):
        await gateway.post(stream=True, max_tokens=20)
    loop_s = time.thread_time() - loop_s
    deadline = time.monotonic() + DEADLINE_S
    while exported() < expected:
        if time.monotonic() > deadline:
            raise click.ClickException("the collector did not take all spans")
        await asyncio.sleep(0.02)
    process_s = time.process_time() - process_s
    return Cost(process_s / requests * 1e6, loop_s / requests * 1e6)


async def measured(requests: int, rounds: int) -> dict[str, list[Cost]]:
    """Rounds of each way in turn."""
    found: dict[str, list[Cost]] = {way: [] for way in WAYS}
    with collector() as url, mock.patch.object(StandingClock, "monotonic_us", _now_us):
        export = SpanExport(url, Resource({"service.name": "benchmark"}), delay_ms=50)
        for way in WAYS:
            await one_round(way, requests, export)
        for _ in range(rounds):
            for way in WAYS:
                found[way].append(await one_round(way, requests, export))
        await export.close()
    return found


def _now_us(_: StandingClock) -> int:
    """What reading a clock costs is part of the cost."""
    return time.monotonic_ns() // 1000


def shown(found: dict[str, list[Cost]]) -> Iterator[str]:
    """The table."""
    yield (
        "| traces | CPU µs a request, median | quickest tenth | added, median | of that the thread "
        "that serves |"
    )
    yield "| --- | --- | --- | --- | --- |"
    for way in WAYS:
        costs = [each.process_us for each in found[way]]
        pairs = list(zip(found["off"], found[way], strict=True))
        added = statistics.median(cost.process_us - off.process_us for off, cost in pairs)
        on_loop = statistics.median(cost.loop_us - off.loop_us for off, cost in pairs)
        tenth = sorted(costs)[len(costs) // 10]
        more = "–" if way == "off" else f"{added:.0f}"
        of_loop = "–" if way == "off" else f"{on_loop:.0f}"
        yield f"| {way} | {statistics.median(costs):.0f} | {tenth:.0f} | {more} | {of_loop} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--quick", action="store_true", help="only see that it runs")
    asked = parser.parse_args()
    requests, rounds = (20, 2) if asked.quick else (asked.requests, asked.rounds)
    found = uvloop.run(measured(requests, rounds))
    for line in shown(found):
        click.echo(line)


if __name__ == "__main__":
    main()
