"""Requests in and out of the simulated engine, on a fast clock and without HTTP."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from simulated_engines import Engines, outcome, read, request, started, starting_engines, until

from backend.sglang_http.faults import Fault
from backend.sglang_http.generation import FinishReason
from backend.sglang_http.refusals import EngineFailure


@pytest.fixture
async def engines() -> AsyncIterator[Engines]:
    """What starts engines."""
    async with starting_engines() as made:
        yield made


async def test_same_seed_same_answer(engines: Engines) -> None:
    """Text, length and usage are the same whatever else runs."""
    answers = []
    for beside in (0, 20):
        engine = await engines.start()
        others = [engine.submit(request(f"other-{n}", prompt=30 + n)) for n in range(beside)]
        answers.append(await read(engine.submit(request("asked", max_tokens=4000))))
        await asyncio.gather(*[read(other) for other in others])
    (one, first), (other, second) = answers
    assert one == other
    assert first.usage.completion_tokens == second.usage.completion_tokens
    assert first.finish is not None
    assert first.finish.reason is FinishReason.STOP
    assert 384 < first.usage.completion_tokens <= 641


async def test_lengths(engines: Engines) -> None:
    """`min_tokens` with as high a maximum fixes the length; 0 is no token at all."""
    engine = await engines.start()
    for most, least in ((900, 900), (0, 0), (3, 0)):
        sent = request(f"length-{most}", max_tokens=most, min_tokens=least)
        _, delta = await read(engine.submit(sent))
        assert delta.finish is not None
        assert (delta.finish.reason.value, delta.usage.completion_tokens) == ("length", most)


async def test_abort_everywhere(engines: Engines) -> None:
    """In the front end and in the queue it costs nothing; running, what was generated."""
    engine = await engines.start(max_running_requests=1)
    running = engine.submit(request("a-running", max_tokens=4000))
    await started(running, 3)
    waiting = engine.submit(request("a-waiting"))
    await until(lambda: engine.load().waiting == 1)
    fresh = engine.submit(request("a-fresh"))
    engine.abort("", abort_all=True)
    assert [await outcome(each) for each in (running, waiting, fresh)] == ["abort"] * 3
    counts = {entry.rid: entry.completion_tokens for entry in engine.ledger.page(0).entries}
    assert counts["a-running"] >= 3
    assert (counts["a-waiting"], counts["a-fresh"]) == (0, 0)
    assert (engine.ledger.running, engine.live_requests) == (0, 0)
    await until(engine.flush_cache)


async def test_no_place_in_the_queue(engines: Engines) -> None:
    """One too many is refused; under priorities a better one throws out the least preferred."""
    engine = await engines.start(
        max_running_requests=1,
        max_queued_requests=1,
        enable_priority_scheduling=True,
        disable_priority_preemption=True,
    )
    running = engine.submit(request("running", max_tokens=4000))
    await started(running)
    worse = engine.submit(request("worse", priority=1))
    refused = engine.submit(request("refused", priority=0))
    assert await outcome(refused) == 503
    better = engine.submit(request("better", priority=2))
    with pytest.raises(EngineFailure, match="aborted by a higher priority request"):
        await read(worse)
    engine.abort("running")
    assert await outcome(better) == "length"
    assert {entry.rid for entry in engine.ledger.page(0).entries} == {"running", "better"}


async def test_preempted_and_resumed(engines: Engines) -> None:
    """Its text pauses and is whole in the end; the ledger knows."""
    flags: dict[str, Any] = {"max_running_requests": 1, "enable_priority_scheduling": True}
    engine = await engines.start(**flags)
    alone, _ = await read((await engines.start(**flags)).submit(request("v", max_tokens=60)))
    victim = engine.submit(request("victim", max_tokens=60, priority=0))
    await started(victim, 5)
    assert await outcome(engine.submit(request("urgent", priority=100))) == "length"
    text, delta = await read(victim)
    assert (text, delta.usage.completion_tokens) == (alone, 60)
    entries = {entry.rid: entry for entry in engine.ledger.page(0).entries}
    assert (entries["victim"].retractions, entries["victim"].priority) == (1, 0)
    assert entries["urgent"].retractions == 0


async def test_out_of_memory(engines: Engines) -> None:
    """What does not fit even alone fails with 500, counted as what it generated."""
    engine = await engines.start(max_total_tokens=64, schedule_conservativeness=0.0)
    sent = engine.submit(request("big", prompt=40, max_tokens=4000))
    assert await outcome(sent) == 500
    (entry,) = engine.ledger.page(0).entries
    assert (entry.finish_reason, entry.completion_tokens) == ("error", sent.completion_tokens)
    assert engine.live_requests == 0
    assert await outcome(engine.submit(request("small"))) == "length"


async def test_a_slow_one_with_a_stop_string(engines: Engines) -> None:
    """Late tokens are scanned too, and the end comes when the last one is out."""
    engine = await engines.start()
    whole, _ = await read(engine.submit(request("whole", max_tokens=6)))
    third = whole.split(" ")[2]
    slow = Fault(kind="slow", after_tokens=1, delay_ms=20)
    stopped = engine.submit(request("slow", max_tokens=50, fault=slow, stop=(third,)))
    text, delta = await read(stopped)
    assert text == whole[: whole.index(third)]
    assert delta.finish is not None
    assert (delta.finish.matched_stop, delta.usage.completion_tokens) == (third, 3)
    late = engine.submit(request("late", max_tokens=6, fault=slow))
    assert (await read(late))[0] == whole
    assert engine.ledger.running == 0


async def test_a_stalled_one_looks_as_if_it_ran(engines: Engines) -> None:
    """Until it is aborted; its usage is what was seen of it."""
    engine = await engines.start()
    stall = Fault(kind="stall", after_tokens=2)
    stalled = engine.submit(request("stalled", max_tokens=50, fault=stall))
    await started(stalled, 2)
    assert await outcome(engine.submit(request("other", max_tokens=20))) == "length"
    assert (engine.load().running, engine.published().running) == (1, 1)
    # Its third token is kept back.
    assert (engine.load().used_tokens, engine.published().used_tokens) == (13, 13)
    engine.abort("stalled")
    _, delta = await read(stalled)
    assert delta.usage.completion_tokens == 2
    assert (engine.load().running, engine.load().used_tokens) == (0, 0)


async def test_a_slow_one_runs_to_its_last_token(engines: Engines) -> None:
    """The scheduler is through with it long before, and nobody can tell: it holds all its tokens,
    and the pool is no larger for it."""
    engine = await engines.start()
    slow = Fault(kind="slow", delay_ms=600_000)
    sent = engine.submit(request("slow", max_tokens=20, fault=slow))
    await until(lambda: engine.replica.totals.generated_tokens == 20)
    await until(lambda: not engine.replica.has_work)
    assert sent.completion_tokens == 0
    for load in (engine.load(), engine.published()):
        assert (load.running, load.used_tokens) == (1, 30)
        assert load.scheduled is not None
        pool = load.used_tokens + (load.cached_tokens or 0) + load.scheduled.available_tokens
        assert pool == engine.info.max_total_num_tokens
    engine.abort("slow")
    assert await outcome(sent) == "abort"
    assert (engine.load().running, engine.load().used_tokens) == (0, 0)


async def test_a_load_that_stands_still(engines: Engines) -> None:
    """It is the one that was published when the fault was armed, asked for or not; one armed later
    keeps that of its own time."""
    engine = await engines.start()
    stale = Fault(kind="stale_load", delay_ms=600_000)
    engine.faults.add(stale)
    running = engine.submit(request("running", max_tokens=4000))
    await until(lambda: engine.load().running == 1)
    await started(running, 50)
    assert engine.published().running == 0
    engine.faults.add(stale)
    assert engine.published().running == 1
    engine.abort("running")
    await until(lambda: engine.load().running == 0)
    assert engine.published().running == 1
    engine.faults.add(stale)
    assert engine.published().running == 0
