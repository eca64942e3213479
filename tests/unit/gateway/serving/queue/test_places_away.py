"""While the store of queues is away: who goes on, who is refused, and who waits."""

import asyncio

import pytest
from memory_pool_queue import MemoryStore
from virtual_time import virtually
from waiting_rooms import WaitingRoom, settle

from gateway.domain.queue.tickets import PlaceState
from gateway.errors import Overloaded


async def away(store: MemoryStore, room: WaitingRoom) -> None:
    """The store goes, and that is known."""
    store.away = True
    while room.watch.is_open:  # noqa: ASYNC110 - nothing tells of it
        await asyncio.sleep(0.01)


@virtually
async def test_while_the_store_is_away_a_new_interactive_request_needs_no_place() -> None:
    """What the ledger lets run then may run, on any worker; it is told of when the store is
    back."""
    store = MemoryStore()
    store.room("w", 1)
    async with WaitingRoom(store).open() as room:
        await away(store, room)
        at_us = store.clock.monotonic_us()
        place = await room.place("a")
        assert store.clock.monotonic_us() == at_us
        assert place.worker is None
        place.runs_on("w")
        await asyncio.sleep(2)
        assert not store.pools["m"].places
        store.away = False
        await asyncio.sleep(1)
        assert store.pools["m"].places["a"].worker == "w"
        await place.end(150)
    assert store.is_at_rest


@virtually
async def test_one_that_was_routed_after_the_store_came_back_is_told_of_then() -> None:
    store = MemoryStore()
    store.room("w", 1)
    async with WaitingRoom(store).open() as room:
        await away(store, room)
        place = await room.place("a")
        store.away = False
        await asyncio.sleep(1)
        assert not store.pools["m"].places
        place.runs_on("w")
        await settle()
        assert store.pools["m"].places["a"].state is PlaceState.HELD
        await place.end(150)
    assert store.is_at_rest


@virtually
async def test_interactive_that_waits_is_refused_at_once_and_batch_waits() -> None:
    store = MemoryStore()
    store.room("w", 1)
    async with WaitingRoom(store).open() as room:
        held = await room.place("a")
        held.began()
        waits, batch = room.place("b"), room.batch("c")
        await asyncio.sleep(0.5)
        lost_us = store.clock.monotonic_us()
        store.away = True
        with pytest.raises(Overloaded) as refused:
            await waits
        assert refused.value.code == "admission_unavailable"
        # A ping that sees it, half a second in which it may only have stood still, and a turn.
        assert store.clock.monotonic_us() - lost_us <= 1_000_000
        late = room.batch("d")
        with pytest.raises(Overloaded):
            await room.batch("e", max_queued=0)
        await asyncio.sleep(60)
        assert not batch.done()
        assert not late.done()
        store.away = False
        await asyncio.sleep(1)
        await held.end(150)
        for task in (batch, late):
            await (await task).end(150)
        await room.places.until_told()
    assert store.is_at_rest


@virtually
async def test_a_pool_that_does_not_answer_while_the_store_does() -> None:
    """As with one shard of a cluster: no place is made up for interactive, and batch waits."""
    store = MemoryStore()
    store.room("w", 1)
    async with WaitingRoom(store).open() as room:
        store.loses_call = lambda step: True
        with pytest.raises(Overloaded) as refused:
            await room.place("a")
        assert refused.value.code == "admission_unavailable"
        batch = room.batch("b")
        await asyncio.sleep(3)
        assert room.watch.is_open
        store.loses_call = lambda step: False
        await (await batch).end(150)
        assert store.clock.monotonic_us() < 4_000_000
    assert store.is_at_rest


@virtually
async def test_batch_whose_wait_ends_while_the_store_is_away_is_told_that() -> None:
    store = MemoryStore()
    async with WaitingRoom(store).open() as room:
        await away(store, room)
        with pytest.raises(Overloaded) as refused:
            await room.batch("a", wait_ms=3_000)
        assert refused.value.code == "admission_unavailable"
        assert room.places.count == 0


@virtually
async def test_a_store_that_stood_still_for_a_moment_refuses_nobody() -> None:
    store = MemoryStore()
    store.room("w", 1)
    async with WaitingRoom(store).open() as room:
        held = await room.place("a")
        waits = room.place("b")
        await asyncio.sleep(0.3)
        await away(store, room)
        await asyncio.sleep(0.3)
        assert not room.watch.is_open
        store.away = False
        await held.end(150)
        await (await waits).end(150)
    assert store.is_at_rest


@virtually
async def test_who_comes_while_the_store_is_coming_back_has_a_place_soon() -> None:
    store = MemoryStore()
    store.room("w", 1)
    async with WaitingRoom(store).open() as room:
        for turn in range(20):
            await away(store, room)
            await asyncio.sleep(turn / 70)
            store.away = False
            while not room.watch.is_open:  # noqa: ASYNC110 - nothing tells of it
                await asyncio.sleep(0.001)
            began_us = store.clock.monotonic_us()
            place = await room.place(f"r{turn}")
            assert place.worker == "w"
            assert store.clock.monotonic_us() - began_us <= 20_000
            await place.end(150)
    assert store.is_at_rest
