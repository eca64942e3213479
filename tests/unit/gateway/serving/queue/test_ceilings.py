"""Ceilings as several gateways learn them together, in virtual time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from memory_pool_ceilings import MemoryCeilings
from memory_pool_queue import MemoryStore
from memory_ports import MemoryDirectory, MemoryFleet
from prometheus_client import REGISTRY
from tenant_examples import a_worker
from virtual_time import virtually
from waiting_rooms import WaitingRoom

from gateway.domain.engine_facts import EngineFacts
from gateway.domain.queue.ceilings import KEPT_FREE, NO_CEILING, START
from gateway.domain.queue.tickets import Band
from gateway.domain.tenant import EngineKind, RequestClass
from gateway.serving.queue.ceilings import LearnedCeilings, rule_for
from gateway.serving.queue.pace import UNPACED

SLOW_MS, FAST_MS = 50, 20
RUNNING = 60
BEGUN = (KEPT_FREE * START, START, NO_CEILING)
DECISIONS = "weir_queue_ceiling_decisions_total"
BATCH = "weir_queue_ceiling_batch_sequences"


def decisions(direction: str) -> float:
    """So far in this process: over all its gateways."""
    return REGISTRY.get_sample_value(DECISIONS, {"direction": direction}) or 0.0


class World:
    """Some gateways before one worker, `w`, on which `RUNNING` sequences run."""

    def __init__(self, gateways: int = 2) -> None:
        self.store = MemoryStore()
        self.shared = MemoryCeilings(self.store)
        self.worker = a_worker("w")
        self.directory = MemoryDirectory(self.worker)
        self.fleet = MemoryFleet(self.directory)
        self.rooms = [WaitingRoom(self.store, f"g{number}") for number in range(gateways)]
        self.gateways = [self.learning(room) for room in self.rooms]

    def learning(self, room: WaitingRoom) -> LearnedCeilings:
        return LearnedCeilings(
            room.queue, self.shared, room.watch, self.fleet, self.store.clock, rule=rule_for(40)
        )

    @asynccontextmanager
    async def open(self) -> AsyncIterator["World"]:
        """With all that goes on behind the requests."""
        self.store.room("w", 10**6)
        async with self.rooms[0].open():
            for number in range(RUNNING):
                await self.rooms[0].batch(f"r{number}")
            for room, gateway in zip(self.rooms, self.gateways, strict=True):
                await gateway.turn()
                room.start(gateway.run())
                room.start(room.watch.run())
            yield self
            for room in self.rooms:
                await room.end()

    def stream(self, gateway: int, band: Band, tpot_ms: int) -> None:
        """A stream that goes on, a token each `tpot_ms`."""

        async def run() -> None:
            clock = self.store.clock
            pace = self.gateways[gateway].pace(self.worker, band)
            began_us = clock.monotonic_us()
            while True:
                now_us = clock.monotonic_us()
                if now_us >= pace.due_us:
                    pace.token(now_us, 1 + (now_us - began_us) // (tpot_ms * 1000))
                await asyncio.sleep(1)

        self.rooms[gateway].start(run())

    def load(self, tpot_ms: int, *, each: int = 30) -> None:
        """On every gateway: batch, and one of interactive."""
        for gateway in range(len(self.gateways)):
            self.stream(gateway, Band.INTERACTIVE, tpot_ms)
            for _ in range(each):
                self.stream(gateway, Band.BATCH, tpot_ms)

    def ceilings(self) -> list[tuple[int, int, int]]:
        """As each gateway would report them now."""
        (view,) = self.fleet.views()
        return [gateway.of(view) for gateway in self.gateways]

    @property
    def epoch(self) -> int:
        return self.shared.records["m", "w"].learned.epoch


@virtually
async def test_it_begins_with_what_the_engine_says() -> None:
    world = World()
    assert world.ceilings() == [BEGUN, BEGUN]
    world.fleet.facts["w"] = EngineFacts(pool_tokens=1_000, running_max=20)
    assert world.ceilings() == [(20, 20, 950), (20, 20, 950)]


@virtually
async def test_an_engine_behind_openais_http_has_no_ceiling() -> None:
    world = World()
    world.directory.all_workers = [a_worker("w", kind=EngineKind.OPENAI)]
    assert world.ceilings()[0] == (NO_CEILING, NO_CEILING, NO_CEILING)
    await world.gateways[0].turn()
    assert world.gateways[0].pace(world.worker, Band.BATCH) is UNPACED
    assert not world.shared.records


@virtually
async def test_a_reserved_worker_learns_in_its_own_pool() -> None:
    """What was learned of it before it was reserved comes along."""
    async with World().open() as world:
        world.load(SLOW_MS)
        await asyncio.sleep(45)
        learned = world.shared.records["m", "w"].learned
        reserved = a_worker("w", request_class=RequestClass.BATCH)
        world.directory.all_workers = [reserved]
        await asyncio.sleep(1.5)
        assert learned.epoch > 0
        assert world.shared.records["m#batch", "w"].learned == learned


@virtually
async def test_gateways_find_out_together_what_neither_saw_alone() -> None:
    """31 streams at each, 60 samples needed; one of them decides, both follow."""
    async with World().open() as world:
        before = decisions("cut")
        world.load(SLOW_MS)
        await asyncio.sleep(40)
        assert world.ceilings() == [BEGUN, BEGUN]
        await asyncio.sleep(5)
        cut = START * 850 // 1000
        assert world.ceilings() == [(KEPT_FREE * START, cut, NO_CEILING)] * 2
        assert decisions("cut") - before == 1
        assert REGISTRY.get_sample_value(BATCH, {"worker": "w"}) == cut


@virtually
async def test_what_meets_the_target_cuts_nothing_and_grows_nothing_unasked() -> None:
    async with World().open() as world:
        world.load(FAST_MS)
        await asyncio.sleep(120)
        assert world.ceilings() == [BEGUN, BEGUN]
        assert world.epoch > 5


@virtually
async def test_batch_that_waits_for_its_ceiling_gets_more() -> None:
    async with World().open() as world:
        world.store.room("w", 10**6, batch=RUNNING)
        waiting = [world.rooms[0].batch(f"more{number}") for number in range(3)]
        world.load(FAST_MS)
        await asyncio.sleep(60)
        assert [each[1] > START for each in world.ceilings()] == [True, True]
        for each in waiting:
            each.cancel()


@virtually
async def test_the_time_is_the_stores() -> None:
    """Gateways whose clocks are an hour behind see the same stretches as any other."""
    world = World()
    world.shared.off_ms = 3_600_000
    async with world.open():
        before = decisions("cut")
        world.load(SLOW_MS)
        await asyncio.sleep(52)
        assert decisions("cut") > before
        since_ms = world.shared.records["m", "w"].learned.since_ms
        assert world.shared.now_ms - 15_000 < since_ms <= world.shared.now_ms


@virtually
async def test_one_look_and_one_meeting_a_second_whatever_runs() -> None:
    async with World(gateways=1).open() as world:
        world.directory.all_workers += [a_worker(f"v{number}") for number in range(5)]
        world.load(FAST_MS)
        await asyncio.sleep(1.5)
        meetings, calls = world.shared.meetings, len(world.store.calls)
        await asyncio.sleep(10)
        assert world.shared.meetings - meetings == 10
        looks = [each for each in world.store.calls[calls:] if each[1] == "observe"]
        assert len(looks) == 10


@virtually
async def test_who_has_no_streams_does_not_look() -> None:
    async with World().open() as world:
        await asyncio.sleep(5)
        assert not [each for each in world.store.calls if each[1] == "observe"]


@virtually
async def test_without_the_store_all_stays_and_then_goes_on() -> None:
    async with World().open() as world:
        world.load(SLOW_MS)
        await asyncio.sleep(52)
        learned = world.ceilings()
        world.store.away = True
        await asyncio.sleep(60)
        assert world.ceilings() == learned
        world.store.away = False
        await asyncio.sleep(30)
        assert all(each[1] < learned[0][1] for each in world.ceilings())


@virtually
async def test_a_store_that_came_back_empty_begins_with_what_gateways_know() -> None:
    async with World().open() as world:
        world.load(SLOW_MS)
        await asyncio.sleep(52)
        learned = world.ceilings()
        assert learned[0] != BEGUN
        world.shared.records.clear()
        await world.learning(world.rooms[0]).turn()  # one that knows nothing comes first
        assert world.shared.records["m", "w"].learned.batch == START
        await asyncio.sleep(1.5)
        assert world.ceilings() == learned
        assert world.shared.records["m", "w"].learned.batch == learned[0][1]


@virtually
async def test_a_gateway_that_starts_has_what_the_others_learned_at_once() -> None:
    async with World().open() as world:
        world.load(SLOW_MS)
        await asyncio.sleep(52)
        (view,) = world.fleet.views()
        newcomer = world.learning(world.rooms[0])
        assert newcomer.of(view) == BEGUN
        await newcomer.turn()
        assert newcomer.of(view) == world.ceilings()[0]


@virtually
async def test_what_was_brought_is_not_brought_again_where_the_reply_was_lost() -> None:
    async with World(gateways=1).open() as world:
        world.load(FAST_MS)
        await asyncio.sleep(1.5)
        world.shared.loses_reply = True
        await asyncio.sleep(3)
        world.shared.loses_reply = False
        await asyncio.sleep(5)
        record = world.shared.records["m", "w"]
        assert 8 <= record.samples.looks <= 10


@virtually
async def test_a_worker_that_restarted_is_not_judged_for_a_while() -> None:
    """Both gateways see it; once is enough. Not to be reached for a moment is no restart."""
    async with World().open() as world:
        before = decisions("restarted")
        world.load(FAST_MS)
        await asyncio.sleep(66)
        world.fleet.failed("w")
        await asyncio.sleep(1.2)
        world.fleet.unhealthy.clear()
        await asyncio.sleep(2)
        assert decisions("restarted") == before
        epoch = world.epoch
        world.fleet.failed("w")
        await asyncio.sleep(4)
        world.fleet.unhealthy.clear()
        await asyncio.sleep(2.5)
        learned = world.shared.records["m", "w"].learned
        assert (learned.epoch, decisions("restarted") - before) == (epoch + 1, 1)
        assert learned.since_ms > world.store.clock.now_ms() + 25_000


@virtually
async def test_a_worker_that_was_removed_is_forgotten() -> None:
    async with World().open() as world:
        await asyncio.sleep(2)
        assert REGISTRY.get_sample_value(BATCH, {"worker": "w"}) == START
        world.directory.all_workers = []
        await asyncio.sleep(2)
        assert REGISTRY.get_sample_value(BATCH, {"worker": "w"}) is None
        assert world.gateways[0].pace(world.worker, Band.BATCH) is UNPACED


@virtually
async def test_how_long_requests_stay_is_seen() -> None:
    async with World(gateways=1).open() as world:
        clock = world.store.clock
        pace = world.gateways[0].pace(world.worker, Band.BATCH)
        pace.token(clock.monotonic_us(), 1)
        await asyncio.sleep(7)
        pace.end(clock.monotonic_us(), 300, clock.monotonic_us())
        await asyncio.sleep(1.5)
        samples = world.shared.records["m", "w"].samples
        assert (samples.ended, samples.stay_ms) == (1, 7_000)
        looks = samples.looks
        await asyncio.sleep(5)
        assert world.shared.records["m", "w"].samples.looks == looks
