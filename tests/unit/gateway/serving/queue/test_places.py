"""A place: had at once, waited for, refused."""

import asyncio

import pytest
from memory_pool_queue import MemoryStore
from scripted_engine import RecordingConnection
from virtual_time import virtually
from waiting_rooms import Slots, WaitingRoom, asked, settle

from gateway.errors import LimitReached, Overloaded
from gateway.serving.queue.refusals import WaitTooLong


def now_ms(store: MemoryStore) -> int:
    return store.clock.monotonic_us() // 1000


@virtually
async def test_a_free_worker_is_had_with_one_question() -> None:
    store = MemoryStore()
    store.room("w", 2)
    async with WaitingRoom(store).open() as room:
        place = await room.places.place(asked("a"))
        assert (place.worker, place.queue_ms) == ("w", 0)
        assert [call[1] for call in store.calls] == ["enter"]
        await place.end(150)
    assert store.is_at_rest


@virtually
async def test_who_waits_is_served_when_the_one_before_has_ended() -> None:
    """Q01: a limit of one, the first call takes 3 s: the second is served after 3 s."""
    store = MemoryStore()
    store.room("w", 1)
    async with WaitingRoom(store).open() as room:
        first = await room.place("a")
        second = room.place("b")
        await asyncio.sleep(3)
        assert not second.done()
        await first.end(150)
        place = await second
        assert place.queue_ms == 3_000
        assert now_ms(store) == 3_000  # by a message, not by a renewal
        await place.end(150)
    assert store.is_at_rest


@virtually
async def test_a_wait_that_is_over_is_told_with_when_to_come_back() -> None:
    """Q06: 503 `no_capacity` with a retry-after."""
    store = MemoryStore()
    store.room("w", 1)
    async with WaitingRoom(store).open() as room:
        first = await room.place("a")
        with pytest.raises(WaitTooLong) as refused:
            await room.place("b", wait_ms=2_000)
        assert now_ms(store) == 2_000
        assert (refused.value.status, refused.value.code) == (503, "no_capacity")
        assert refused.value.retry_after_ms == 1_000
        assert refused.value.reason == "wait_over"
        await settle()
        assert not store.pools["m"].waiting
        await first.unused()


@virtually
async def test_what_is_predicted_to_wait_for_too_long_is_refused_at_once() -> None:
    """With the prediction less what it would wait itself, at most a minute."""
    store = MemoryStore()
    store.room("w", 1)
    async with WaitingRoom(store).open() as room:
        slow = await room.place("x")
        await asyncio.sleep(100)
        await slow.end(150)
        held, ahead = await room.place("a"), room.place("b", wait_ms=5_000)
        await settle()
        with pytest.raises(WaitTooLong) as refused:
            await room.place("c", wait_ms=20_000)
        assert now_ms(store) == 100_000
        assert (refused.value.reason, refused.value.wait_ms) == ("predicted", 100_000)
        assert refused.value.retry_after_ms == 60_000
        await held.unused()
        await (await ahead).unused()
    assert store.is_at_rest


@virtually
async def test_a_tenant_has_no_more_waiting_than_it_may() -> None:
    store = MemoryStore()
    store.room("w", 1)
    async with WaitingRoom(store).open() as room:
        held = await room.place("a")
        waits = room.place("b", max_queued=1)
        await asyncio.sleep(0.1)
        with pytest.raises(LimitReached) as refused:
            await room.place("c", max_queued=1)
        assert (refused.value.status, refused.value.type) == (429, "queue")
        assert refused.value.code == "rate_limit_exceeded"
        assert now_ms(store) == 100
        await held.unused()
        await (await waits).unused()
    assert store.is_at_rest


@virtually
async def test_who_may_not_wait_is_told_of_the_pool_or_of_its_own_limit() -> None:
    """With `max_queued` 0: its own 429 where its limits have no room, else 503."""
    store = MemoryStore()
    store.room("w", 1)
    async with WaitingRoom(store).open() as room:
        held = await room.place("x")
        with pytest.raises(WaitTooLong) as busy:
            await room.places.admit(asked("a", max_queued=0), Slots(1))
        assert (busy.value.reason, busy.value.code) == ("no_place", "no_capacity")
        with pytest.raises(LimitReached) as own:
            await room.places.admit(asked("b", max_queued=0), Slots(0))
        assert own.value.type == "sequences"
        assert now_ms(store) == 0
        await held.unused()
        await settle()
        assert room.places.count == 0


@virtually
async def test_a_client_that_leaves_while_it_waits_is_gone_at_once() -> None:
    store = MemoryStore()
    store.room("w", 1)
    async with WaitingRoom(store).open() as room:
        held = await room.place("a")
        client = RecordingConnection()
        waits = room.start(room.places.place(asked("b"), client))
        await asyncio.sleep(0.2)
        assert "b" in store.pools["m"].waiting
        client.leave()
        await settle()
        assert waits.done()
        assert "b" not in store.pools["m"].waiting
        assert now_ms(store) == 200
        await held.unused()
    assert store.is_at_rest


@virtually
async def test_a_gateway_that_goes_down_lets_nobody_wait() -> None:
    store = MemoryStore()
    store.room("w", 1)
    async with WaitingRoom(store).open() as room:
        held = await room.place("a")
        waits, batch = room.place("b"), room.batch("c")
        await asyncio.sleep(0.1)
        room.places.stop_all()
        for refused in await asyncio.gather(waits, batch, return_exceptions=True):
            assert isinstance(refused, Overloaded)
            assert refused.code == "no_capacity"
        with pytest.raises(Overloaded):
            await room.place("d")
        assert now_ms(store) == 100
        await room.places.until_told()
        assert set(store.pools["m"].places) == {"a"}
        assert not store.pools["m"].waiting
        await held.end(1)
    assert store.is_at_rest
