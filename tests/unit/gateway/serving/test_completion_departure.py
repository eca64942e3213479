"""A client that leaves, at every point of its request (INV-1, INV-5, INV-11)."""

import asyncio
from collections.abc import Sequence

import engine_events as events
import pytest
from memory_gateway import MemoryGateway, text_of, until
from scripted_engine import HANG, RecordingConnection, Step
from tenant_examples import COUNTED, a_tenant

from billing.domain.usage_record import Outcome, UsageSource
from gateway.serving import live as live_module

FORMS = pytest.mark.parametrize("stream", [True, False])


async def departed(
    script: Sequence[Step], *, stream: bool, after_abort: Sequence[bytes] | None
) -> tuple[MemoryGateway, RecordingConnection]:
    """A client that leaves where the script says LEAVE, that is at its first callable."""
    gateway = MemoryGateway()
    client = gateway.a_client(stream=stream)
    gateway.engine.scripts = [[client.leave if step is leave else step for step in script]]
    gateway.engine.after_abort = [after_abort]
    await gateway.serve(client)
    return gateway, client


def leave() -> None:
    """Stands for the client's leave in a script."""


async def test_before_its_body_nothing_is_held() -> None:
    """D10: nobody to answer, nothing asked of any store."""
    gateway = MemoryGateway()
    client = RecordingConnection(leaves_early=True)
    await gateway.serve(client)
    gateway.assert_nothing_admitted()
    assert client.status is None


@pytest.mark.parametrize("moment", ["while counted", "while admitted"])
async def test_before_admission_nothing_is_kept(moment: str) -> None:
    """A lease that was granted meanwhile is given back whole, its request too (R09)."""
    gateway = MemoryGateway()
    gateway.directory.one_tenant = a_tenant(COUNTED)
    client = gateway.a_client()
    if moment == "while counted":
        gateway.tokenizer.on_count = client.leave
    else:
        gateway.ledger.on_acquired = client.leave
    await gateway.serve(client)
    gateway.assert_nothing_admitted()
    book = gateway.ledger.states["acme"].scopes.get("tenant")
    assert book is None or (book.window.tokens, book.window.requests) == (0, 0)
    assert client.status is None


@FORMS
async def test_right_after_admission_no_stream_is_opened(stream: bool) -> None:
    """It was journaled, so it is recorded; nothing was sent, so nothing is charged."""
    gateway = MemoryGateway()
    client = gateway.a_client(stream=stream)
    gateway.journal.on_admitted = client.leave
    await gateway.serve(client)
    record = gateway.assert_one_of_each(Outcome.CLIENT_CANCELLED)
    assert (record.prompt_tokens, record.output_tokens, record.billable) == (0, 0, False)
    assert gateway.engine.streams == []
    assert gateway.ledger.states["acme"].scopes["tenant"].window.requests == 0


@FORMS
async def test_before_the_first_event_the_engine_stops(stream: bool) -> None:
    """D03: prefill is aborted by id; the prompt is recorded, and not paid for."""
    gateway, client = await departed(
        [leave, HANG], stream=stream, after_abort=[events.finish("abort"), events.usage(5, 0)]
    )
    record = gateway.assert_one_of_each(Outcome.CLIENT_CANCELLED)
    assert (record.prompt_tokens, record.output_tokens, record.billable) == (5, 0, False)
    assert gateway.engine.streams[0].aborts == 1
    assert client.status is None


@FORMS
async def test_mid_stream_the_engines_own_count_is_billed(stream: bool) -> None:
    """D01, D04, D05, S08, V43: what was generated until the abort, to the token."""
    gateway, client = await departed(
        [events.role(), events.content("a"), events.content("b"), leave, HANG],
        stream=stream,
        after_abort=[events.content("c"), events.finish("abort"), events.usage(5, 4)],
    )
    record = gateway.assert_one_of_each(Outcome.CLIENT_CANCELLED)
    assert (record.prompt_tokens, record.output_tokens, record.billable) == (5, 4, True)
    assert (record.usage_source, record.finish_reason) == (UsageSource.ENGINE_FINAL, "abort")
    assert text_of(client) == ("ab" if stream else "")


@pytest.mark.parametrize("progress", [True, False])
async def test_an_engine_without_abort_is_counted(progress: bool) -> None:
    """S08: the last progress, or else the deltas; never more than the engine generated."""
    usage = events.counts(5, 2) if progress else None
    gateway, _ = await departed(
        [events.content("a"), events.content("b", usage=usage), leave, HANG],
        stream=True,
        after_abort=None,
    )
    record = gateway.assert_one_of_each(Outcome.CLIENT_CANCELLED)
    assert (record.prompt_tokens, record.output_tokens, record.billable) == (5, 2, True)
    expected = UsageSource.ENGINE_PROGRESS if progress else UsageSource.COUNTED
    assert record.usage_source is expected


@FORMS
async def test_after_the_finish_it_is_completed(stream: bool) -> None:
    """DESIGN 7: once the engine's finish is read the outcome is completed, delivered or not."""
    gateway, _ = await departed(
        [events.content("a"), events.finish(), leave, HANG],
        stream=stream,
        after_abort=[events.usage(5, 1)],
    )
    record = gateway.assert_one_of_each(Outcome.COMPLETED)
    assert (record.usage_source, record.finish_reason) == (UsageSource.ENGINE_FINAL, "stop")


async def test_all_choices_are_aborted() -> None:
    """INV-11: of three streams, one waiting, one running, one finished, each is told or done."""
    gateway = MemoryGateway([HANG], [events.content("a"), HANG], events.answer(["x"]))
    gateway.engine.after_abort = [
        [events.finish("abort"), events.usage(0, 0)],
        [events.finish("abort"), events.usage(5, 3)],
    ]
    client = gateway.a_client(n=3, stream=True)
    task = asyncio.create_task(gateway.serve(client))
    await until(lambda: b"stop" in client.sent and b'"a"' in client.sent)
    client.leave()
    await task
    record = gateway.assert_one_of_each(Outcome.CLIENT_CANCELLED)
    assert (record.prompt_tokens, record.output_tokens) == (5, 4)
    assert [stream.aborts for stream in gateway.engine.streams[:2]] == [1, 1]


async def test_a_leave_during_comments_leaves_no_task() -> None:
    """C11: the keep-alive of a request ends with it, begun or not."""
    for keepalive_ms in (1, 30):
        gateway = MemoryGateway([HANG], keepalive_ms=keepalive_ms)
        client = gateway.a_client(stream=True)
        task = asyncio.create_task(gateway.serve(client))
        await until(lambda g=gateway: g.engine.streams)
        if keepalive_ms == 1:
            await until(lambda c=client: c.sent)
        client.leave()
        await task
        await asyncio.sleep(0.06)
        gateway.assert_one_of_each(Outcome.CLIENT_CANCELLED)


async def test_a_client_that_takes_no_bytes_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """DESIGN 2.2: the slowest reader is configured; what was generated is billed, the lease is
    free, and the gateway waits for it no more."""
    monkeypatch.setattr(live_module, "_TICK_S", 0.001)
    gateway = MemoryGateway([events.content("a"), events.content("b"), HANG])
    watch = asyncio.create_task(gateway.live.run())
    client = gateway.a_client(stream=True)
    client.block = gateway.clock.monotonic_us
    task = asyncio.create_task(gateway.serve(client))
    await until(lambda: client.blocked_since_us is not None)
    gateway.clock.advance(20_001)
    await task
    watch.cancel()
    await asyncio.wait([watch])
    record = gateway.assert_one_of_each(Outcome.CLIENT_CANCELLED)
    assert client.gave_up
    assert (record.output_tokens, record.usage_source) == (2, UsageSource.ENGINE_FINAL)
