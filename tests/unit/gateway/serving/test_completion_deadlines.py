"""A worker that is silent, or a stream that never ends (C02)."""

import asyncio
from collections.abc import Sequence

import engine_events as events
import pytest
from memory_gateway import MemoryGateway, error_of, until
from scripted_engine import HANG, Step

from billing.domain.usage_record import Outcome
from gateway.serving import live as live_module

FORMS = pytest.mark.parametrize("stream", [True, False])


@pytest.mark.parametrize(
    ("script", "wait_ms"),
    [
        ([HANG], 30_001),
        ([events.content("a"), HANG], 10_001),
    ],
)
@FORMS
async def test_a_silent_worker_is_given_up(
    script: Sequence[Step], wait_ms: int, stream: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C02: no first event, or a stall after it: timed out, unbilled, the lease is free."""
    monkeypatch.setattr(live_module, "_TICK_S", 0.001)
    gateway = MemoryGateway(script)
    watch = asyncio.create_task(gateway.live.run())
    client = gateway.a_client(stream=stream)
    task = asyncio.create_task(gateway.serve(client))
    await until(lambda: gateway.engine.streams)
    for _ in range(20):
        await asyncio.sleep(0)
    gateway.clock.advance(wait_ms)
    await task
    watch.cancel()
    await asyncio.wait([watch])
    record = gateway.assert_one_of_each(Outcome.TIMED_OUT)
    assert not record.billable
    assert error_of(client)["code"] == "worker_timeout"
    assert client.status == (200 if stream and len(script) > 1 else 504)


async def test_a_stream_has_a_longest_duration(monkeypatch: pytest.MonkeyPatch) -> None:
    """DESIGN 2.2: however busy it is, it ends in the error event."""
    monkeypatch.setattr(live_module, "_TICK_S", 0.001)
    gateway = MemoryGateway()

    def slow_token() -> None:
        gateway.clock.advance(5_000)

    token: list[Step] = [slow_token, events.content("b")]
    gateway.engine.scripts = [[events.content("a"), *token * 21, HANG]]
    watch = asyncio.create_task(gateway.live.run())
    client = await gateway.post(stream=True)
    watch.cancel()
    await asyncio.wait([watch])
    gateway.assert_one_of_each(Outcome.TIMED_OUT)
    assert error_of(client)["message"] == "the longest duration of a stream is over"
