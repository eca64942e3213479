"""A store that knows no worker: it is told what runs, then of the workers, and decides."""

import asyncio

import pytest
from memory_pool_queue import MemoryStore
from virtual_time import virtually
from waiting_rooms import WaitingRoom, asked, settle

from gateway.serving.queue.refusals import WorkersGone


@virtually
async def test_who_asks_a_store_that_forgot_is_served_at_once() -> None:
    store = MemoryStore()
    store.room("w", 2)
    async with WaitingRoom(store).open() as room:
        held = await room.place("a")
        store.lose_everything()
        at_us = store.clock.monotonic_us()
        place = await room.places.place(asked("b"))
        assert store.clock.monotonic_us() == at_us
        assert set(store.pools["m"].places) == {"a", "b"}
        await place.end(150)
        await held.end(150)
    assert store.is_at_rest


@virtually
async def test_it_is_told_first_what_runs() -> None:
    """Else who asks would be granted what is in use."""
    store = MemoryStore()
    store.room("w", 1)
    async with WaitingRoom(store).open() as room:
        held = await room.place("a")
        store.lose_everything()
        waits = room.place("b", wait_ms=5_000)
        await asyncio.sleep(4)
        assert not waits.done()
        await held.end(150)
        await (await waits).end(150)
    assert store.is_at_rest


@virtually
@pytest.mark.parametrize("max_queued", [0, 100])
async def test_where_no_worker_is_seen_either_it_is_said_so_at_once(max_queued: int) -> None:
    store = MemoryStore()
    async with WaitingRoom(store).open() as room:
        at_us = store.clock.monotonic_us()
        with pytest.raises(WorkersGone, match="no worker of m") as refused:
            await room.places.place(asked("a", max_queued=max_queued))
        assert refused.value.code == "no_worker"
        assert refused.value.retry_after_ms == 1_000
        assert store.clock.monotonic_us() == at_us
        assert room.places.count == 0
    assert store.is_at_rest


@virtually
async def test_who_waits_while_the_last_worker_dies_is_told_that() -> None:
    """Not before its wait is over: it may come back."""
    store = MemoryStore()
    store.room("w", 1)
    async with WaitingRoom(store).open() as room:
        held = await room.place("a")
        waits = room.place("b", wait_ms=3_000)
        other = room.place("c", wait_ms=6_000)
        await settle()
        store.lose_worker("w")
        await held.end(150)
        await asyncio.sleep(2.9)
        assert not waits.done()
        with pytest.raises(WorkersGone):
            await waits
        store.room("w", 1)
        await (await other).end(150)
    assert store.is_at_rest


@virtually
async def test_who_waited_in_a_store_that_forgot_and_finds_no_worker_is_told_that() -> None:
    store = MemoryStore()
    store.room("w", 1)
    async with WaitingRoom(store).open() as room:
        held = await room.place("a")
        waits = room.place("b", wait_ms=60_000)
        await settle()
        store.away = True
        await asyncio.sleep(0.5)
        store.lose_everything()
        store.standing.clear()
        store.away = False
        with pytest.raises(WorkersGone):
            await waits
        await held.end(150)
        store.room("w", 1)
        await (await room.place("c")).end(150)
    assert store.is_at_rest
