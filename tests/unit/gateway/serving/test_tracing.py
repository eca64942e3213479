"""Which traces are kept, whose trace a request is in, and what tracing may not do to a request."""

import asyncio
from collections.abc import Sequence
from typing import Any

import engine_events as events
import pytest
import trace_scenarios as happens
from hosted_gateway import REFUSED, a_gateway
from log_capture import logging_to
from memory_gateway import MemoryGateway, until
from one_place import BATCH, one_place
from scripted_engine import HANG, RecordingConnection, Step
from trace_scenarios import CLIENT, timed
from traced_requests import Traces, traced

from billing.domain.usage_record import Outcome
from gateway.domain.latency import Targets
from gateway.domain.tenant import Limits, RequestClass
from gateway.errors import WorkerFailed
from gateway.serving import attempt, tracing
from gateway.telemetry.traces import KEPT, NOT_KEPT
from gateway.telemetry.tracing import NO_TRACE
from gateway.wire.traceparent import RemoteSpan, read_traceparent

TRACE_ID, SPAN_ID = 0x4BF92F3577B34DA6A3CE929D0E0E4736, 0x00F067AA0BA902B7
INTERACTIVE = RequestClass.INTERACTIVE


def kept_as(traces: Traces) -> list[Any]:
    """Why each was kept."""
    return [spans[-1].attributes["weir.trace.kept"] for spans in traces.kept]


async def served(gateway: MemoryGateway, **options: Any) -> list[Any]:
    """Why the trace of one request was kept that was not drawn."""
    traces = traced(gateway, ratio_permille=0, **{"kept_per_s": 1, **options})
    await gateway.post(stream=True)
    return kept_as(traces)


async def test_what_went_well_is_kept_by_lot_alone() -> None:
    """Without it nothing is made of the steps."""
    assert await served(MemoryGateway(events.answer(["a"]))) == []
    traces = traced(gateway := MemoryGateway(events.answer(["a"])))
    await gateway.post()
    assert kept_as(traces) == ["ratio"]


async def test_what_failed_is_kept() -> None:
    """Before anything was sent, and after."""
    assert await served(MemoryGateway(workers=0)) == ["failed"]
    assert await served(MemoryGateway([REFUSED], workers=1)) == ["failed"]
    broken: list[Step] = [events.content("a"), WorkerFailed("gone")]
    assert await served(MemoryGateway(broken)) == ["failed"]


async def test_what_was_tried_twice_or_fell_back_is_kept() -> None:
    """Whatever it was in the end."""
    retried = MemoryGateway([REFUSED], events.answer(["a"]), workers=2)
    assert await served(retried) == ["retried"]
    assert await served(a_gateway([REFUSED], events.answer(["a"]), workers=1)) == ["fell_back"]


@pytest.mark.parametrize(
    ("targets", "reasons"),
    [
        (Targets(ttft_ms=30, tpot_ms=10), []),
        (Targets(ttft_ms=29, tpot_ms=10), ["slow"]),
        (Targets(ttft_ms=30, tpot_ms=9), ["slow"]),
    ],
)
async def test_what_was_slower_than_its_class_should_be_is_kept(
    targets: Targets, reasons: list[str]
) -> None:
    """Its first token, or each: 30 ms and 10 here."""
    gateway = MemoryGateway([])
    gateway.engine.scripts = [timed(gateway)]
    assert await served(gateway, targets={INTERACTIVE: targets}) == reasons


async def test_batch_is_held_against_its_own_target() -> None:
    """And has none here."""
    gateway = MemoryGateway([])
    gateway.engine.scripts = [timed(gateway)]
    traces = traced(gateway, ratio_permille=0, kept_per_s=1, targets={INTERACTIVE: Targets(1, 1)})
    await gateway.serve(gateway.a_client(), headers=BATCH)
    assert kept_as(traces) == []


async def test_what_a_tenant_may_ask_and_is_not_given_is_not_kept() -> None:
    """It could ask for any number of them: refusals of its own limits, keys that are none, bodies
    that are none, requests that it leaves."""
    gateway = MemoryGateway([HANG], events.answer(["b"]))
    traces = traced(gateway, ratio_permille=0, kept_per_s=100)
    leaving = gateway.a_client(stream=True)
    running = asyncio.create_task(gateway.serve(leaving))
    await until(lambda: len(gateway.engine.streams) == 1)
    leaving.leave()
    await running
    gateway.engine.scripts.append([])
    await gateway.post(b"{")
    await gateway.post(max_tokens=5_000)
    await gateway.post(model="other")
    await gateway.serve(gateway.a_client(), headers={b"authorization": b"Bearer x"})
    await gateway.serve(RecordingConnection(leaves_early=True))
    assert gateway.record.outcome is Outcome.CLIENT_CANCELLED
    assert kept_as(traces) == []


@pytest.mark.parametrize(("wait_ms", "reasons"), [(b"0", []), (b"9999999", ["failed"])])
async def test_a_wait_that_the_client_cut_short_is_no_failure_of_ours(
    wait_ms: bytes, reasons: list[str]
) -> None:
    """It is answered by a 503 and could be polled for; what came to nothing in the time that is
    ours is a failure."""
    silent = asyncio.Event()
    script: list[Step] = [silent, *events.answer(["a"])]
    async with one_place(script, limits=Limits(max_wait_ms=60)) as gateway:
        traces = traced(gateway, ratio_permille=0, kept_per_s=100)
        first = asyncio.create_task(gateway.serve(gateway.a_client()))
        await until(lambda: len(gateway.engine.streams) == 1)
        client = gateway.a_client()
        with logging_to() as log:
            await gateway.serve(client, headers={b"x-weir-max-wait-ms": wait_ms})
        assert client.status == 503
        assert kept_as(traces) == reasons
        assert len(log.lines) == len(reasons)
        silent.set()
        await first


async def test_batch_that_gave_its_place_back_was_not_retried() -> None:
    """That happens by design, and often."""
    silent = asyncio.Event()
    scripts: list[Sequence[Step]] = [[silent], events.answer(["i"]), events.answer(["b"])]
    async with one_place(*scripts) as gateway:
        traces = traced(gateway, ratio_permille=0, kept_per_s=100)
        batch = asyncio.create_task(gateway.serve(gateway.a_client(), headers=BATCH))
        await until(lambda: len(gateway.engine.streams) == 1)
        await gateway.post()
        await batch
        assert [len(each.attempts) for each in gateway.journal.records] == [1, 2]
        assert kept_as(traces) == []


async def test_its_second_wait_is_a_span_of_its_own() -> None:
    """Batch that was taken back: within the stream, between two attempts."""
    silent = asyncio.Event()
    scripts: list[Sequence[Step]] = [[silent], events.answer(["i"]), events.answer(["b"])]
    async with one_place(*scripts) as gateway:
        traces = traced(gateway)
        batch = asyncio.create_task(gateway.serve(gateway.a_client(), headers=BATCH))
        await until(lambda: len(gateway.engine.streams) == 1)
        await gateway.post()
        await batch
        (stream,) = traces.named("stream")
        inside = [span for span in traces.last if span.parent_id == stream.span_id]
        names = ["client" if span.kind == "client" else span.name for span in inside]
        assert names == ["route", "client", "place", "route", "client"]
        outcomes = [span.attributes["weir.outcome"] for span in traces.named("attempt")]
        assert outcomes == ["taken_back", "completed"]
        assert not any(span.failed for span in traces.last)


async def test_an_outage_keeps_so_many_a_second() -> None:
    """Of one tenant a fifth of all. The rest is counted, by why it would have been kept."""
    gateway = MemoryGateway(workers=0)
    traces = traced(gateway, ratio_permille=0, kept_per_s=10)
    before = [KEPT.labels("failed")._value.get(), NOT_KEPT.labels("failed")._value.get()]
    for _ in range(5):
        await gateway.post()
    assert kept_as(traces) == ["failed", "failed"]
    after = [KEPT.labels("failed")._value.get(), NOT_KEPT.labels("failed")._value.get()]
    assert [b - a for a, b in zip(before, after, strict=True)] == [2, 3]


@pytest.mark.parametrize(
    ("context", "trace_id", "parent_id", "link"),
    [
        ("continue", TRACE_ID, SPAN_ID, None),
        ("link", None, None, RemoteSpan(TRACE_ID, SPAN_ID)),
        ("ignore", None, None, None),
    ],
)
async def test_a_clients_context(
    context: str, trace_id: int | None, parent_id: int | None, link: RemoteSpan | None
) -> None:
    """It is gone on with, linked to, or not looked at, as the operator has it."""
    gateway = MemoryGateway(events.answer(["a"]))
    traces = traced(gateway, context=context)
    await gateway.serve(gateway.a_client(), headers=CLIENT)
    root = traces.root
    assert (root.trace_id == TRACE_ID) is (trace_id is not None)
    assert (root.parent_id, root.parent_is_remote) == (parent_id, parent_id is not None)
    assert root.link == link


@pytest.mark.parametrize("context", ["continue", "link"])
async def test_without_a_key_nobody_writes_into_a_trace(context: str) -> None:
    """Its trace is one of our own, and knows nothing of the other."""
    gateway = MemoryGateway()
    traces = traced(gateway, context=context)
    headers = {**CLIENT, b"authorization": b"Bearer sk-weir-none"}
    answer = await gateway.serve(gateway.a_client(), headers=headers)
    assert answer.status == 401
    assert traces.root.trace_id != TRACE_ID
    assert (traces.root.parent_id, traces.root.link) == (None, None)


async def test_a_malformed_context_begins_a_trace_of_our_own() -> None:
    """And is no reason to refuse anything."""
    gateway = MemoryGateway(events.answer(["a"]))
    traces = traced(gateway)
    answer = await gateway.serve(gateway.a_client(), headers={b"traceparent": b"00-zz-zz-01"})
    assert (answer.status, traces.root.parent_id, traces.root.link) == (200, None, None)


@pytest.mark.parametrize("flags", [b"00", b"01"])
@pytest.mark.parametrize("ratio_permille", [0, 1000])
async def test_a_clients_flag_decides_nothing(ratio_permille: int, flags: bytes) -> None:
    """A tenant can neither make us export its requests nor keep us from it; workers are told what
    we have decided."""
    gateway = MemoryGateway(events.answer(["a"]))
    traces = traced(gateway, ratio_permille=ratio_permille)
    headers = {b"traceparent": CLIENT[b"traceparent"][:-2] + flags}
    await gateway.serve(gateway.a_client(), headers=headers)
    assert len(traces.kept) == ratio_permille // 1000
    (told,) = gateway.engine.traceparents
    assert told is not None
    assert told.endswith("-01" if ratio_permille else "-00")


async def test_a_worker_is_told_of_the_span_of_its_attempt_and_a_provider_of_none() -> None:
    """INV-13: no id of ours goes to another company."""
    gateway = a_gateway([REFUSED], [REFUSED], events.answer(["x"]), workers=2)
    traces = traced(gateway)
    await gateway.post()
    *told, at_provider = gateway.engine.traceparents
    attempts = traces.named("attempt")[:2]
    assert [read_traceparent((each or "").encode()) for each in told] == [
        RemoteSpan(span.trace_id, span.span_id) for span in attempts
    ]
    assert at_provider is None


async def test_v26_one_trace_of_many_requests_is_a_row_each() -> None:
    """V26: the trace's id is no key of anything: a client that repeats it is billed for each."""
    gateway = MemoryGateway(events.answer(["a"]), events.answer(["b"]))
    traces = traced(gateway)
    for _ in range(2):
        await gateway.serve(gateway.a_client(), headers=CLIENT)
    assert {spans[-1].trace_id for spans in traces.kept} == {TRACE_ID}
    assert len({spans[-1].span_id for spans in traces.kept}) == 2
    assert len({record.request_id for record in gateway.journal.records}) == 2


async def test_without_tracing_nothing_is_noted_and_nobody_is_told() -> None:
    """As where no collector is named."""
    gateway = MemoryGateway(events.answer(["a"]))
    await gateway.serve(gateway.a_client(), headers=CLIENT)
    assert gateway.engine.traceparents == [None]
    assert NO_TRACE.steps == []
    step = NO_TRACE.leaf("x")
    step.tell(lambda: pytest.fail("nothing is put together"))
    assert step.attributes == {}


async def test_a_bug_in_tracing_costs_its_trace_and_no_request(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is told without its words."""

    def fail(*_: object) -> None:
        raise RuntimeError(happens.BUG)

    gateway = MemoryGateway(events.answer(["a"]))
    traces = traced(gateway)
    monkeypatch.setattr(tracing, "spans_of", fail)
    answer = await gateway.post()
    assert (answer.status, traces.kept) == (200, [])
    gateway.assert_one_of_each(Outcome.COMPLETED)
    assert "is lost: RuntimeError" in caplog.text
    assert happens.BUG not in caplog.text


async def test_a_bug_in_what_is_said_of_a_step_costs_just_that(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The rest of its trace is kept."""

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError(happens.BUG)

    gateway = MemoryGateway(events.answer(["a"]))
    traces = traced(gateway)
    monkeypatch.setattr(attempt, "attempt_attributes", fail)
    answer = await gateway.post()
    gateway.assert_one_of_each(Outcome.COMPLETED)
    assert (answer.status, traces.one("attempt")) == (200, {})
    assert traces.root.attributes["weir.outcome"] == "completed"
    assert happens.BUG not in caplog.text
