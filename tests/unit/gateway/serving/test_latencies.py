"""What all gateways measured of first tokens and tokens."""

import engine_events as events
import pytest
from live_world import MemoryBoard
from memory_gateway import MemoryGateway
from memory_ports import StandingClock
from usage_examples import a_record

from billing.domain.usage_record import UsageRecord
from gateway.domain.latency import OfModel, OfWorker, Slice
from gateway.serving.latencies import Latencies
from gateway.serving.ports import LedgerUnavailable

MODEL = OfModel("ttft", "m", "interactive")
WORKER = OfWorker("ttft", "w0")


class Gateways:
    """Two that tell each other through a board, with one clock."""

    def __init__(self) -> None:
        self.board = MemoryBoard()
        self.clock = StandingClock()
        self.one = Latencies(self.board.slices_of("one"), self.clock)
        self.two = Latencies(self.board.slices_of("two"), self.clock)


def ended(latencies: Latencies, ttft_ms: int | None, tpot_us: int | None = None) -> None:
    """A request ended there."""
    record = a_record(model="m", worker_id="w0", ttft_ms=ttft_ms, tpot_us=tpot_us)
    latencies.ended(record)


async def test_all_gateways_are_added_up() -> None:
    """By worker, and by model and class; one that is slow is in everybody's figures."""
    world = Gateways()
    for _ in range(90):
        ended(world.one, 200, 20_000)
    for _ in range(10):
        ended(world.two, 3_000, 90_000)
    await world.one.tell()
    await world.two.tell()
    for latencies in (world.one, world.two):
        figures = await latencies.figures()
        for series in (MODEL, WORKER):
            assert figures[series].minute.count == 100
            assert figures[series].minute.p95_ms == pytest.approx(3_000, rel=0.05)
        tpot = figures[OfWorker("tpot", "w0")].minute
        assert tpot.count == 100
        assert tpot.p95_ms == pytest.approx(90, rel=0.05)


async def test_what_was_not_there_is_not_counted() -> None:
    """A request without a token has no latency, one with a single token none between tokens."""
    world = Gateways()
    ended(world.one, None)
    assert await world.one.figures() == {}
    ended(world.one, 100, None)
    await world.one.tell()
    assert set(await world.one.figures()) == {MODEL, WORKER}


async def test_figures_pass_with_time() -> None:
    """From the minute's first, then from the five minutes', and the slices are forgotten."""
    world = Gateways()
    ended(world.one, 100)
    await world.one.tell()
    world.clock.advance(75_000)
    figures = (await world.two.figures())[MODEL]
    assert (figures.minute.count, figures.minute.p95_ms) == (0, None)
    assert figures.five_minutes.count == 1
    world.clock.advance(300_000)
    assert await world.two.figures() == {}


async def test_a_slice_is_told_once_and_again_where_it_grew() -> None:
    """What is told again takes the place of what was told: nothing counts twice."""
    world = Gateways()
    ended(world.one, 100)
    await world.one.tell()
    world.board.slices.clear()
    await world.one.tell()
    assert world.board.slices == {}
    ended(world.one, 100)
    await world.one.tell()
    await world.one.tell()
    assert (await world.two.figures())[MODEL].minute.count == 2


async def test_what_could_not_be_told_is_told_later() -> None:
    """While it is young enough to count; meanwhile nobody knows, which is no zero."""
    world = Gateways()
    world.board.away = True
    ended(world.one, 100)
    for call in (world.one.tell, world.one.figures):
        with pytest.raises(LedgerUnavailable):
            await call()
    world.clock.advance(30_000)
    ended(world.one, 100)
    world.board.away = False
    await world.one.tell()
    assert (await world.two.figures())[MODEL].minute.count == 2


async def test_what_is_too_old_is_never_told() -> None:
    """And takes no memory: a store that is away for long costs nothing."""
    world = Gateways()
    ended(world.one, 100)
    world.clock.advance(400_000)
    await world.one.tell()
    assert world.board.slices == {}


async def test_what_became_too_old_while_another_was_told_is_passed_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A request that ends meanwhile drops the slices that no longer count."""
    world = Gateways()
    ended(world.one, 100)
    world.clock.advance(10_000)
    ended(world.one, 100)
    store = world.one._store
    tell = store.tell

    async def slowly(number: int, measured: Slice) -> None:
        await tell(number, measured)
        monkeypatch.setattr(store, "tell", tell)
        world.clock.advance(600_000)
        ended(world.one, 100)

    monkeypatch.setattr(store, "tell", slowly)
    await world.one.tell()
    await world.one.tell()
    assert (await world.one.figures())[MODEL].minute.count == 1


async def test_a_request_that_ended_is_counted_at_once() -> None:
    """By its record, once that is durable."""
    seen: list[UsageRecord] = []
    gateway = MemoryGateway(events.answer(["a"]), on_ended=seen.append)
    await gateway.post()
    assert seen == [gateway.record]
