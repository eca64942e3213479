"""What the pools' store is told of workers, and how soon it hears of a loss."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from memory_pool_queue import MemoryStore
from memory_ports import MemoryDirectory, MemoryFleet
from tenant_examples import a_worker
from virtual_time import virtually
from waiting_rooms import WaitingRoom, asked, settle

from gateway.domain.tenant import RequestClass
from gateway.domain.worker import WorkerView
from gateway.serving.queue.reporting import Reporter


class Fixed:
    """Of every worker the same."""

    def __init__(self) -> None:
        self.sequences = 2

    def of(self, view: WorkerView) -> tuple[int, int, int]:
        return self.sequences, 1, 1_000


class AsReported:
    """A waiting room that sees the workers as its gateway's reporter does."""

    def __init__(self, world: "World") -> None:
        self._world = world

    def has_any(self, pool: str) -> bool:
        return self._world.reporter.has_any(pool)

    def sees(self, pool: str, worker: str) -> bool:
        return self._world.reporter.sees(pool, worker)

    async def tell_again(self, pool: str) -> None:
        await self._world.reporter.tell_again(pool)


class World:
    """A gateway that reports two workers."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.room = WaitingRoom(self.store, workers=AsReported(self))
        self.directory = MemoryDirectory(a_worker("v"), a_worker("w"))
        self.fleet = MemoryFleet(self.directory)
        self.ceilings = Fixed()
        self.reporter = Reporter(
            self.room.queue, self.room.watch, self.fleet, self.ceilings, self.store.clock
        )

    @asynccontextmanager
    async def open(self) -> AsyncIterator["World"]:
        async with self.room.open():
            self.room.start(self.reporter.run())
            await settle()
            yield self

    @property
    def reports(self) -> int:
        return sum(call[1] == "report" for call in self.store.calls)

    def well(self, pool: str = "m") -> set[str]:
        now_ms = self.store.clock.now_ms()
        rooms = self.store.pools[pool].rooms.values()
        return {room.id for room in rooms if room.well_until_ms > now_ms}


@virtually
async def test_ceilings_are_reported_each_second() -> None:
    async with World().open() as world:
        room = world.store.pools["m"].rooms["w"]
        assert (room.sequences_max, room.batch_max, room.tokens_max) == (2, 1, 1_000)
        assert room.well_until_ms - world.store.clock.now_ms() == 3_000
        await asyncio.sleep(10.5)
        assert 10 <= world.reports <= 12
        assert world.well() == {"v", "w"}


@virtually
async def test_a_lost_worker_is_granted_nothing_any_more() -> None:
    async with World().open() as world:
        await asyncio.sleep(0.3)
        world.fleet.failed("w")
        await asyncio.sleep(0.06)
        assert world.well() == {"v"}
        places = [world.room.place(f"r{i}") for i in range(4)]
        await asyncio.sleep(0.2)
        assert [task.result().worker for task in places if task.done()] == ["v", "v"]
        world.fleet.unhealthy.clear()
        await asyncio.sleep(0.06)
        assert [(await task).worker for task in places] == ["v", "v", "w", "w"]
        for task in places:
            await (await task).end(150)
    assert world.store.is_at_rest


@virtually
async def test_a_change_that_is_told_is_reported_without_a_look() -> None:
    async with World().open() as world:
        await asyncio.sleep(0.3)
        at_us = world.store.clock.monotonic_us()
        world.fleet.failed("v")
        world.reporter.changed()
        await settle()
        assert world.well() == {"w"}
        assert world.store.clock.monotonic_us() == at_us


@virtually
async def test_a_ceiling_that_was_learned_is_reported_soon() -> None:
    async with World().open() as world:
        world.ceilings.sequences = 5
        await asyncio.sleep(0.06)
        assert world.store.pools["m"].rooms["w"].sequences_max == 5


@virtually
async def test_what_the_store_forgot_is_told_again_at_once_and_for_all_who_ask_once() -> None:
    async with World().open() as world:
        await asyncio.sleep(0.3)
        world.store.lose_everything()
        reports = world.reports
        await asyncio.gather(*(world.reporter.tell_again("m") for _ in range(5)))
        assert world.reports == reports + 1
        assert world.well() == {"v", "w"}
        await world.reporter.tell_again("another")
        assert world.reports == reports + 1


@virtually
async def test_whether_a_pool_has_any_worker() -> None:
    async with World().open() as world:
        world.fleet.failed("w")
        assert world.reporter.has_any("m")
        world.fleet.failed("v")
        assert not world.reporter.has_any("m")
        assert not world.reporter.has_any("another")


@virtually
async def test_a_worker_that_is_reserved_moves_to_the_pool_of_its_class() -> None:
    """Soon, and out of the one where it was; and back."""
    async with World().open() as world:
        reserved = a_worker("w", request_class=RequestClass.BATCH)
        world.directory.all_workers = [a_worker("v"), reserved]
        await asyncio.sleep(0.06)
        assert (world.well(), world.well("m#batch")) == ({"v"}, {"w"})
        assert world.reporter.has_any("m#batch")
        world.fleet.failed("w")
        assert not world.reporter.has_any("m#batch")
        world.fleet.unhealthy = {"v"}
        assert not world.reporter.has_any("m")
        world.fleet.unhealthy = set()
        world.directory.all_workers = [a_worker("v"), a_worker("w")]
        await asyncio.sleep(0.06)
        assert (world.well(), world.well("m#batch")) == ({"v", "w"}, set())
        assert not world.reporter.has_any("m#batch")


@virtually
async def test_without_reports_no_worker_is_well() -> None:
    """Its only gateway has ended: nothing more is granted after three seconds."""
    world = World()
    async with world.open():
        pass
    await asyncio.sleep(2.9)
    assert world.well() == {"v", "w"}
    await asyncio.sleep(0.2)
    assert not world.well()


@virtually
async def test_the_last_worker_of_a_pool_and_a_worker_that_drains() -> None:
    async with World().open() as world:
        world.directory.all_workers = [a_worker("v"), a_worker("w", draining=True)]
        await asyncio.sleep(0.06)
        assert world.well() == {"v"}
        world.directory.all_workers = []
        await asyncio.sleep(0.06)
        assert not world.well()
        reports = world.reports
        await asyncio.sleep(5)
        assert world.reports == reports


@virtually
async def test_a_store_that_is_back_is_told_at_once() -> None:
    """Also where it came back empty."""
    async with World().open() as world:
        world.store.away = True
        await asyncio.sleep(5)
        world.store.lose_everything()
        world.store.away = False
        await asyncio.sleep(0.3)
        assert world.well() == {"v", "w"}
        place = await world.room.places.place(asked("a"))
        await place.end(150)
