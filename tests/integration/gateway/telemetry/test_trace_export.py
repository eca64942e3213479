"""Spans on their way to a collector over real HTTP, which may be away, slow or broken: they cost
spans, which are counted, and no request anything."""

import asyncio
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import engine_events as events
import pytest
from log_capture import logging_to
from memory_gateway import MemoryGateway
from opentelemetry.sdk.resources import Resource
from trace_receiver import trace_receiver

from billing.domain.usage_record import Outcome
from gateway.serving.tracing import Tracing
from gateway.telemetry.trace_export import SpanExport
from gateway.telemetry.trace_keeping import Keeping
from gateway.telemetry.traces import SPANS
from gateway.telemetry.tracing import SpanData
from gateway.wire.traceparent import RemoteSpan

RESOURCE = Resource({"service.name": "weir-gateway", "service.instance.id": "g-1"})
DEADLINE_S = 15.0


def counted() -> dict[str, int]:
    """What became of spans so far in this process."""
    results = ("exported", "failed", "dropped")
    return {result: int(SPANS.labels(result)._value.get()) for result in results}


def since(before: dict[str, int]) -> dict[str, int]:
    """And since then."""
    return {result: count - before[result] for result, count in counted().items()}


async def until(condition: Callable[[], bool]) -> None:
    """Wait for what a thread does, within a deadline."""
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)


@asynccontextmanager
async def exporting(
    url: str, *, timeout_s: float = 5.0, spans_max: int = 8192, close_s: float = 5.0
) -> AsyncIterator[SpanExport]:
    """Spans are sent there, a batch every 20 ms."""
    export = SpanExport(url, RESOURCE, timeout_s=timeout_s, delay_ms=20, spans_max=spans_max)
    try:
        yield export
    finally:
        await export.close(within_s=close_s)


def a_span(**changes: object) -> SpanData:
    """The root of a trace."""
    values: dict[str, object] = {
        "name": "POST /v1/completions",
        "kind": "server",
        "trace_id": 0xABC,
        "span_id": 0xDEF,
        "parent_id": None,
        "parent_is_remote": False,
        "began_ns": 1_000,
        "ended_ns": 3_000,
        "attributes": {},
        "failed": False,
    }
    return SpanData(**{**values, **changes})  # type: ignore[arg-type]


async def requests(count: int, export: SpanExport) -> MemoryGateway:
    """So many requests, all traced, all answered; nothing is left of any."""
    gateway = MemoryGateway(*[events.answer(["a"])] * count)
    gateway.completions._tracing = Tracing(
        gateway.clock, Keeping(gateway.clock, ratio_permille=1000, kept_per_s=0), export
    )
    for _ in range(count):
        assert (await gateway.post()).status == 200
    assert [each.outcome for each in gateway.journal.records] == [Outcome.COMPLETED] * count
    return gateway


async def test_all_of_a_span_arrives() -> None:
    """Ids, parent, kind, times, status, link, and values of each type."""
    attributes = {"weir.tenant.id": "acmé", "weir.attempts": 3, "weir.billable": True,
                  "gen_ai.response.time_to_first_chunk": 0.25,
                  "gen_ai.response.finish_reasons": ("stop", "length")}  # fmt: skip
    remote = a_span(parent_id=0x123, parent_is_remote=True, failed=True, attributes=attributes)
    link = a_span(link=RemoteSpan(0x77, 0x88))
    child = a_span(name="read", kind="internal", span_id=0x1, parent_id=0xDEF)
    with trace_receiver() as receiver:
        async with exporting(receiver.url + "/v1/traces") as export:
            export([remote, link, child])
            await until(lambda: len(receiver.spans) == 3)
        first, second, third = receiver.spans
    assert (first.trace_id, first.span_id) == ("0" * 29 + "abc", "0" * 13 + "def")
    assert first.parent_id == "0" * 13 + "123"
    assert first.span.flags & 0x200  # its parent is another process's
    assert (first.name, first.failed) == ("request", True)
    assert first.says == {**attributes, "gen_ai.response.finish_reasons": ["stop", "length"]}
    assert (first.span.start_time_unix_nano, first.span.end_time_unix_nano) == (1_000, 3_000)
    assert first.resource == {"service.name": "weir-gateway", "service.instance.id": "g-1"}
    assert (second.parent_id, second.failed) == ("", False)
    (linked,) = second.span.links
    assert (linked.trace_id.hex()[-2:], linked.span_id.hex()[-2:]) == ("77", "88")
    assert (third.name, third.parent_id) == ("read", second.span_id)
    assert not third.span.flags & 0x200


async def test_requests_are_traced_while_the_collector_takes_its_time() -> None:
    """It answers nothing until all of them have been answered: none waits for it."""
    before = counted()
    with trace_receiver() as receiver:
        receiver.gate.clear()
        async with exporting(receiver.url + "/v1/traces") as export:
            gateway = await requests(100, export)
            assert since(before) == {"exported": 0, "failed": 0, "dropped": 0}
            receiver.gate.set()
            await until(lambda: since(before)["exported"] == 1400)
        roots = [span for span in receiver.spans if span.name == "request"]
    assert [each.says["weir.request_id"] for each in roots] == [
        str(record.request_id) for record in gateway.journal.records
    ]


async def test_too_many_that_wait_are_dropped_by_whole_traces() -> None:
    """In bounded memory; what comes once there is room again is taken."""
    before = counted()
    with trace_receiver() as receiver:
        receiver.gate.clear()
        async with exporting(receiver.url + "/v1/traces", spans_max=100) as export:
            await requests(20, export)
            assert since(before) == {"exported": 0, "failed": 0, "dropped": 13 * 14}
            receiver.gate.set()
            await until(lambda: since(before)["exported"] == 7 * 14)
            await requests(1, export)
            await until(lambda: since(before)["exported"] == 8 * 14)
        traces = {span.trace_id for span in receiver.spans}
    assert len(traces) == 8


@pytest.mark.parametrize("status", [500, 400, 404])
async def test_a_collector_that_fails_costs_its_spans(status: int) -> None:
    """They are counted; the log says so once, not in the collector's words, and once when it takes
    them again."""
    before = counted()
    with trace_receiver() as receiver, logging_to() as log:
        receiver.status = status
        async with exporting(receiver.url + "/v1/traces", timeout_s=0.5) as export:
            await requests(2, export)
            await until(lambda: since(before)["failed"] == 28)
            await requests(1, export)
            await until(lambda: since(before)["failed"] == 42)
            receiver.status = 200
            await requests(1, export)
            await until(lambda: since(before)["exported"] == 14)
    assert len(log.lines) == 2, log.lines
    assert "does not take them" in log.lines[0]
    assert "takes them again" in log.lines[1]


async def test_a_collector_that_is_away_costs_its_spans() -> None:
    """Nothing listens there; requests go on."""
    before = counted()
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/v1/traces"
        async with exporting(url, timeout_s=0.5) as export:
            await requests(3, export)
            await until(lambda: since(before)["failed"] == 42)
    assert since(before) == {"exported": 0, "failed": 42, "dropped": 0}


async def test_a_stop_sends_what_waits() -> None:
    """However long a span would have waited for others."""
    with trace_receiver() as receiver:
        export = SpanExport(receiver.url + "/v1/traces", RESOURCE, delay_ms=3_600_000)
        await requests(3, export)
        assert receiver.spans == []
        await export.close()
        assert len(receiver.spans) == 42


@pytest.mark.parametrize("answers", ["never", "with an error"])
async def test_a_stop_does_not_wait_for_a_collector(answers: str) -> None:
    """Neither for one that hangs, nor through the pauses between two tries, which end with it."""
    others = set(threading.enumerate())
    with trace_receiver() as receiver:
        if answers == "never":
            receiver.gate.clear()
        receiver.status = 503
        async with exporting(receiver.url + "/v1/traces", timeout_s=60, close_s=0.2) as export:
            await requests(1, export)
            began = time.monotonic()
        assert time.monotonic() - began < 3
        if answers == "with an error":
            await until(lambda: not _threads_since(others))


def _threads_since(others: set[threading.Thread]) -> list[threading.Thread]:
    """Those of the export: they would go on for as long as a batch may take, a minute here."""
    return [
        thread
        for thread in set(threading.enumerate()) - others
        if thread.name.startswith(("Otel", "spans-close"))
    ]
