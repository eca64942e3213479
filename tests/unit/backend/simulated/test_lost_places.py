"""What the ledger knows of those who lost their place in the batch."""

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
    assert [await outcome(each) for each in (better, between)] == ["abort", "length"]
    entries = {entry.rid: entry for entry in engine.ledger.page(0).entries}
    assert entries.keys() == {"victim", "better", "between"}
    lost = entries["victim"]
    assert (lost.finish_reason, lost.retractions) == ("error", 1)
    assert lost.completion_tokens == victim.completion_tokens >= 5
    assert lost.started_at_ms is not None
    await until(lambda: engine.live_requests == 0)
    assert engine.ledger.running == 0


async def test_preempted_ones_do_not_run(engines: Engines) -> None:
    """No more sequences run, by the ledger, than the batch has places."""
    engine = await engines.start(max_running_requests=2, enable_priority_scheduling=True)
    worse = [engine.submit(request(f"w{n}", priority=0, max_tokens=4000)) for n in range(2)]
    for generation in worse:
        await started(generation)
    better = [engine.submit(request(f"b{n}", priority=50, max_tokens=300)) for n in range(2)]
    for generation in better:
        await started(generation)
    assert engine.ledger.running == 2
    assert [await outcome(generation) for generation in better] == ["length"] * 2
    have = [generation.completion_tokens for generation in worse]
    for generation, tokens in zip(worse, have, strict=True):
        await started(generation, tokens + 2)
    assert engine.ledger.running == 2
    engine.abort("", abort_all=True)
    assert [await outcome(generation) for generation in worse] == ["abort"] * 2
    page = engine.ledger.page(0)
    assert (page.running, page.running_peak) == (0, 2)
    assert {entry.running_at_start for entry in page.entries} == {1, 2}
    assert {entry.rid: entry.retractions for entry in page.entries if entry.retractions} == {
        "w0": 1,
        "w1": 1,
    }


async def test_aborted_while_it_waits_again(engines: Engines) -> None:
    """It does not run twice less than it ran."""
    engine = await engines.start(max_running_requests=1, enable_priority_scheduling=True)
    victim = engine.submit(request("victim", priority=0, max_tokens=4000))
    await started(victim, 3)
    better = engine.submit(request("better", priority=50, max_tokens=4000))
    await started(better)
    engine.abort("victim")
    assert await outcome(victim) == "abort"
    assert engine.ledger.running == 1
    engine.abort("better")
    assert await outcome(better) == "abort"
    assert engine.ledger.running == 0


async def test_retracted_for_memory(engines: Engines) -> None:
    """Many that lose their places again and again, and some that never fit: none runs after."""
    engine = await engines.start(max_total_tokens=300, schedule_conservativeness=0.0)
    sent = [engine.submit(request(f"r{n}", prompt=20 + n, max_tokens=150)) for n in range(8)]
    assert [await outcome(generation) for generation in sent] == ["length"] * 8
    page = engine.ledger.page(0)
    assert sum(entry.retractions for entry in page.entries) > 0
    assert page.running == 0
    assert page.running_peak <= 300 // 21
    assert not engine._delivery.waiting
