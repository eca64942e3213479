"""A replica that stands still or all but does, and who does not wait for it."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from simulated_engines import Engines, outcome, request, started, starting_engines, until

from backend.sglang_http.faults import Fault

STALL = Fault(kind="stall", scope="replica")


@pytest.fixture
async def engines() -> AsyncIterator[Engines]:
    """What starts engines."""
    async with starting_engines() as made:
        yield made


async def test_who_leaves_has_left(engines: Engines) -> None:
    """Its entry is there at once, wherever it was, and nothing is waited for."""
    engine = await engines.start(max_running_requests=1)
    running = engine.submit(request("running", max_tokens=4000))
    await started(running, 3)
    waiting = engine.submit(request("waiting"))
    await until(lambda: engine.load().waiting == 1)
    engine.faults.add(STALL)
    fresh = engine.submit(request("fresh"))
    tokens = running.completion_tokens
    for generation in (running, waiting, fresh):
        engine.abort(generation.rid)
    assert (engine.live_requests, engine.ledger.running) == (0, 0)
    entries = {entry.rid: entry for entry in engine.ledger.page(0).entries}
    assert {rid: entry.completion_tokens for rid, entry in entries.items()} == {
        "running": tokens,
        "waiting": 0,
        "fresh": 0,
    }
    assert {entry.finish_reason for entry in entries.values()} == {"abort"}
    engine.faults.clear()
    assert await outcome(engine.submit(request("running"))) == "length"
    await until(engine.flush_cache)
    assert len(engine.ledger.page(0).entries) == 4


async def test_it_was_about_to_leave(engines: Engines) -> None:
    """Who was to leave with the step in flight leaves when that comes to a stand."""
    engine = await engines.start()
    running = engine.submit(request("running", max_tokens=4000))
    await started(running, 3)
    engine.abort("running")
    engine.faults.add(STALL)
    assert engine.live_requests == 0


async def test_slow_no_longer(engines: Engines) -> None:
    """The step in flight goes on at its own pace once the fault is cleared, and keeps what it has
    done: minutes are not waited out."""
    engine = await engines.start(speed=1.0)
    engine.faults.add(Fault(kind="slow", scope="replica", factor=1000.0))
    sent = engine.submit(request("sent", max_tokens=3))
    await until(lambda: engine.ledger.running == 1)
    engine.faults.add(Fault(kind="slow", scope="replica", factor=0.5))
    assert sent.completion_tokens == 0
    engine.faults.clear()
    loop = asyncio.get_running_loop()
    cleared_s = loop.time()
    assert await outcome(sent) == "length"
    assert loop.time() - cleared_s < 1.0
    moments = engine.load().scheduled
    assert moments is not None
    assert moments.prefill_busy_us < 1_000_000
