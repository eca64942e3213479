"""A place on a worker that its gateway has not found yet: kept for it, and then left to others."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from memory_pool_queue import MemoryStore
from virtual_time import virtually
from waiting_rooms import StoresWorkers, WaitingRoom, settle

from gateway.errors import Overloaded
from gateway.serving.queue.held import HeldPlace
from gateway.serving.queue.refusals import WorkersGone
from gateway.serving.queue.sight import SEEN_MS

SEEN_S = SEEN_MS / 1000


class Behind(StoresWorkers):
    """A gateway that has not found some workers, which others have."""

    def __init__(self, store: MemoryStore, *unseen: str) -> None:
        super().__init__(store)
        self._behind = store
        self.unseen = set(unseen)

    def has_any(self, pool: str) -> bool:
        return bool(self._behind.standing.keys() - self.unseen)

    def sees(self, pool: str, worker: str) -> bool:
        return worker not in self.unseen and super().sees(pool, worker)


@asynccontextmanager
async def behind(store: MemoryStore, *unseen: str) -> AsyncIterator[tuple[WaitingRoom, Behind]]:
    """A gateway that has not found these workers."""
    workers = Behind(store, *unseen)
    async with WaitingRoom(store, workers=workers).open() as room:
        yield room, workers


def is_held(store: MemoryStore, name: str) -> bool:
    return name in store.pools["m"].places


@virtually
async def test_a_worker_that_is_found_in_time_is_waited_for() -> None:
    """By who is granted at once and by who waited; the wait is part of what it is told."""
    store = MemoryStore()
    store.room("w", 1)
    async with behind(store, "w") as (room, workers):
        first, second = room.place("1"), room.place("2", wait_ms=60_000)
        await asyncio.sleep(SEEN_S - 0.1)
        assert not first.done()
        assert is_held(store, "1")
        workers.unseen.clear()
        place = await first
        assert (place.worker, place.queue_ms) == ("w", SEEN_MS - 100)
        workers.unseen.add("w")
        await asyncio.sleep(30)
        await place.end(150)
        await asyncio.sleep(1)
        assert not second.done()
        workers.unseen.clear()
        await (await second).end(150)
    assert store.is_at_rest


@virtually
async def test_a_worker_that_is_not_found_is_left_to_others() -> None:
    """Who waits here waits on, in no queue, until one is found; its deadline is what it was."""
    store = MemoryStore()
    store.room("w", 1)
    async with behind(store, "w") as (room, workers), WaitingRoom(store, "other").open() as other:
        here = room.place("1", wait_ms=60_000)
        await asyncio.sleep(SEEN_S + 0.1)
        assert store.is_at_rest
        there = await other.place("2")
        await asyncio.sleep(20)
        assert not here.done()
        assert [step for gateway, step, _ in store.calls if gateway == "g"][-1] == "leave"
        workers.unseen.clear()
        await asyncio.sleep(1)
        assert not here.done()
        await there.end(150)
        place = await here
        assert 23_000 < place.queue_ms < 23_300
        await place.end(150)
    assert store.is_at_rest


@virtually
async def test_where_another_is_seen_it_goes_on_and_that_one_takes_it() -> None:
    """As after a failure."""
    store = MemoryStore()
    store.room("w", 1)
    async with behind(store, "w") as (room, _):
        store.room("seen", 1)
        held = [room.place("1"), room.place("2")]
        await asyncio.sleep(SEEN_S - 0.1)
        assert [each.done() for each in held].count(True) == 1
        await asyncio.sleep(0.2)
        assert {(await each).worker for each in held} == {"w", "seen"}
        for each in held:
            await each.result().end(150)
    assert store.is_at_rest


@virtually
async def test_without_a_worker_until_its_deadline_it_is_told_so() -> None:
    store = MemoryStore()
    store.room("w", 1)
    async with behind(store, "w") as (room, _):
        for wait_ms in (500, 10_000):
            since_us = store.clock.monotonic_us()
            with pytest.raises(WorkersGone):
                await room.place(f"{wait_ms}", wait_ms=wait_ms)
            assert store.clock.monotonic_us() - since_us == wait_ms * 1_000
        await room.places.until_told()
    assert (store.is_at_rest, room.places.count) == (True, 0)


@virtually
async def test_who_does_not_wait_is_told_at_once() -> None:
    store = MemoryStore()
    store.room("w", 1)
    async with behind(store, "w") as (room, _):
        with pytest.raises(WorkersGone):
            await room.place("1", max_queued=0)
        assert store.clock.monotonic_us() == 0
        await room.places.until_told()
    assert store.is_at_rest


@virtually
async def test_a_gateway_that_goes_down_tells_them() -> None:
    """While the worker is waited for, and after it was given up."""
    for after_s in (1, SEEN_S + 5):
        store = MemoryStore()
        store.room("w", 1)
        async with behind(store, "w") as (room, _):
            asking = room.place("1")
            await asyncio.sleep(after_s)
            since_us = store.clock.monotonic_us()
            room.places.stop_all()
            with pytest.raises(Overloaded, match="shutting down"):
                await asking
            assert store.clock.monotonic_us() == since_us
            await room.places.until_told()
        assert (store.is_at_rest, room.places.count) == (True, 0)


@virtually
async def test_batch_whose_place_is_asked_back_meanwhile_goes_back() -> None:
    """An interactive request of a gateway that sees the worker waits for it."""
    store = MemoryStore()
    store.room("w", 1)
    async with behind(store, "w") as (room, workers), WaitingRoom(store, "other").open() as other:
        waiting = room.batch("b")
        await asyncio.sleep(0.5)
        interactive = other.place("a")
        batch: HeldPlace = await waiting
        assert batch.surrender()
        again = room.start(batch.wait_again())
        place = await interactive
        assert store.clock.monotonic_us() < 700_000
        await asyncio.sleep(SEEN_S + 5)
        await place.end(150)
        await asyncio.sleep(0.5)
        assert not again.done()
        workers.unseen.clear()
        await again
        await batch.end(150)
    assert store.is_at_rest


@virtually
async def test_a_store_that_comes_back_is_told_of_who_waits_once_a_worker_is_seen() -> None:
    store = MemoryStore()
    store.room("w", 1)
    async with behind(store, "w") as (room, workers):
        asking = room.batch("b")
        await asyncio.sleep(SEEN_S + 1)
        store.away = True
        await asyncio.sleep(5)
        workers.unseen.clear()
        await asyncio.sleep(1)
        assert not asking.done()
        store.away = False
        store.lose_everything()
        await (await asking).end(150)
        await settle()
    assert store.is_at_rest
