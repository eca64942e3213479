"""Whether a worker calls itself healthy."""

from collections.abc import AsyncIterator

import pytest
from simulated_engines import Engines, outcome, request, started, starting_engines

from backend.sglang_http import health
from backend.sglang_http.faults import Fault


@pytest.fixture
async def engines(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Engines]:
    """What starts engines. Health is looked for more often and not for so long."""
    monkeypatch.setattr(health, "POLL_S", 0.02)
    monkeypatch.setattr(health, "TIMEOUT_S", 0.5)
    async with starting_engines() as made:
        yield made


async def test_one_that_stalls_is_no_illness(engines: Engines) -> None:
    """Its tokens do not come, so that one is asked for."""
    engine = await engines.start()
    stall = Fault(kind="stall", after_tokens=2)
    stalled = engine.submit(request("stalled", max_tokens=50, fault=stall))
    await started(stalled, 2)
    assert engine.load().running == 1
    assert await health.is_healthy(engine)
    engine.abort("stalled")
    assert await outcome(stalled) == "abort"


async def test_what_runs_answers_for_it(engines: Engines) -> None:
    """Nothing is asked for while a batch runs."""
    engine = await engines.start(speed=1.0)
    running = engine.submit(request("running", max_tokens=4000))
    await started(running)
    assert await health.is_healthy(engine)
    engine.abort("running")
    assert await outcome(running) == "abort"
    assert [entry.rid for entry in engine.ledger.page(0).entries] == ["running"]


async def test_a_slow_clock_is_no_illness(engines: Engines) -> None:
    """Its front end alone takes 30 simulated milliseconds: 0.6 s here, more than a real engine is
    given."""
    engine = await engines.start(speed=0.05)
    assert await health.is_healthy(engine)


@pytest.mark.parametrize("busy", [False, True])
async def test_a_replica_that_stands_still_is_ill(engines: Engines, *, busy: bool) -> None:
    """Whether something runs or not; what it asked itself is gone afterwards."""
    engine = await engines.start()
    if busy:
        await started(engine.submit(request("running", max_tokens=100_000)))
    engine.faults.add(Fault(kind="stall", scope="replica"))
    assert not await health.is_healthy(engine)
    assert engine.live_requests == busy
