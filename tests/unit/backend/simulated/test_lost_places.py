"""What the ledger knows of those who lost their place in the batch."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from simulated_engines import Engines, outcome, read, request, started, starting_engines, until

from backend.sglang_http.refusals import EngineFailure


@pytest.fixture
async def engines() -> AsyncIterator[Engines]:
    """What starts engines."""
    async with starting_engines() as made:
        yield made


async def test_thrown_out_of_the_queue_after_it_ran(engines: Engines) -> None:
    """What it generated is in the ledger, as an error, and it runs no more."""
    engine = await engines.start(
        max_running_requests=1, max_queued_requests=1, enable_priority_scheduling=True
    )
    victim = engine.submit(request("victim", priority=0, max_tokens=4000))
    await started(victim, 5)
    better = engine.submit(request("better", priority=50, max_tokens=4000))
    await started(better)
    between = engine.submit(request("between", priority=20))
    with pytest.raises(EngineFailure, match="aborted by a higher priority request"):
        await read(victim)
    engine.abort("better")
    assert await asyncio.gather(outcome(better), outcome(between)) == ["abort", "length"]
    entries = {entry.rid: entry for entry in engine.ledger.page(0).entries}
    assert entries.keys() == {"victim", "better", "between"}
    lost = entries["victim"]
    assert (lost.finish_reason, lost.retractions) == ("error", 1)
    assert lost.completion_tokens == victim.completion_tokens >= 5
    assert lost.started_at_ms is not None
    await until(lambda: engine.live_requests == 0)
    assert engine.ledger.running == 0
