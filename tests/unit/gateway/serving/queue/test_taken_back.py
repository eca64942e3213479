"""Batch gives its place back for interactive until its first token."""

import asyncio

import pytest
from memory_pool_queue import MemoryStore
from virtual_time import virtually
from waiting_rooms import WaitingRoom, settle

from gateway.domain.queue.tickets import PlaceState
from gateway.errors import Overloaded
from gateway.serving.queue.held import HeldPlace
from gateway.serving.queue.refusals import WaitTooLong


async def stream(place: HeldPlace, *, token_after_s: float, ends_after_s: float) -> str:
    """What a straight line does with a place: aborts at once when asked to, until the first
    token."""
    if not await _token(place, token_after_s):
        return "aborted"
    assert place.began()
    await asyncio.sleep(ends_after_s)
    await place.end(150)
    return "ended"


async def _token(place: HeldPlace, after_s: float) -> bool:
    aborted = asyncio.Event()

    def abort() -> None:
        if place.surrender():
            aborted.set()

    place.on_taken_back(abort)
    try:
        async with asyncio.timeout(after_s):
            await aborted.wait()
    except TimeoutError:
        return True
    return False


def state(store: MemoryStore) -> PlaceState:
    """Of request `b`."""
    return store.pools["m"].places["b"].state


@virtually
async def test_before_the_first_token_it_goes_back_and_waits_again() -> None:
    store = MemoryStore()
    store.room("w", 1)
    async with WaitingRoom(store).open() as room:
        batch = await room.batch("b")
        streaming = room.start(stream(batch, token_after_s=5, ends_after_s=1))
        await asyncio.sleep(1)
        interactive = room.place("a")
        assert await streaming == "aborted"
        assert not batch.began()  # what still comes is not sent
        again = room.start(batch.wait_again())
        place = await interactive
        assert place.queue_ms == 0
        await asyncio.sleep(2)
        assert not again.done()
        assert store.pools["m"].waiting["b"].ticket.taken_back == 1
        await place.end(150)
        await again
        assert batch.worker == "w"
        assert batch.queue_ms == 2_000
        assert batch.began()
        await batch.end(150)
    assert store.is_at_rest
    assert store.clock.monotonic_us() == 3_000_000


@virtually
async def test_after_the_first_token_it_is_kept() -> None:
    store = MemoryStore()
    store.room("w", 1)
    async with WaitingRoom(store).open() as room:
        batch = await room.batch("b")
        streaming = room.start(stream(batch, token_after_s=0.1, ends_after_s=1))
        await asyncio.sleep(0.2)
        assert state(store) is PlaceState.BEGAN
        interactive = room.place("a")
        await asyncio.sleep(0.2)
        assert not batch.taken_back.is_set()
        assert await streaming == "ended"
        await (await interactive).end(150)
        assert store.clock.monotonic_us() == 1_100_000
    assert store.is_at_rest


@virtually
async def test_a_token_between_the_message_and_the_abort_wins() -> None:
    """The store has asked it back already, and takes that back."""
    store = MemoryStore()
    store.room("w", 1)
    async with WaitingRoom(store).open() as room:
        batch = await room.batch("b")
        interactive = room.place("a")
        await batch.taken_back.wait()
        assert batch.began()
        assert not batch.surrender()
        assert not batch.taken_back.is_set()
        await asyncio.sleep(1)
        assert state(store) is PlaceState.BEGAN
        assert not interactive.done()
        await batch.end(150)
        await (await interactive).end(150)
    assert store.is_at_rest


@virtually
async def test_a_message_that_crosses_the_first_token_changes_nothing() -> None:
    """The store asks it back while it is being told of the token."""
    store = MemoryStore()
    store.room("w", 1)
    store.delay_ms = lambda step: 100 if step == "began" else 0
    async with WaitingRoom(store).open() as room:
        batch = await room.batch("b")
        assert batch.began()
        interactive = room.place("a")
        await asyncio.sleep(0.05)
        assert state(store) is PlaceState.TAKEN_BACK
        assert not batch.taken_back.is_set()
        await asyncio.sleep(0.5)
        assert state(store) is PlaceState.BEGAN
        assert not batch.taken_back.is_set()
        await batch.end(150)
        await (await interactive).end(150)
    assert store.is_at_rest


@virtually
async def test_a_lost_message_is_told_again_by_a_renewal() -> None:
    store = MemoryStore()
    store.room("w", 1)
    store.loses_message = lambda message: not message.is_grant
    async with WaitingRoom(store).open() as room:
        batch = await room.batch("b")
        interactive = room.place("a")
        await batch.taken_back.wait()
        assert 0 < store.clock.monotonic_us() <= 600_000
        assert batch.surrender()
        again = room.start(batch.wait_again())
        await (await interactive).end(150)
        await again
        await batch.unused()
    assert store.is_at_rest


@virtually
async def test_a_first_token_that_the_store_did_not_hear_of_is_told_again() -> None:
    store = MemoryStore()
    store.room("w", 1)
    async with WaitingRoom(store).open() as room:
        batch = await room.batch("b")
        store.loses_call = lambda step: step == "began"
        batch.began()
        await asyncio.sleep(0.3)
        store.loses_call = lambda step: False
        assert state(store) is PlaceState.HELD
        await asyncio.sleep(2)
        assert state(store) is PlaceState.BEGAN
        await batch.end(150)
    assert store.is_at_rest


@virtually
async def test_what_a_renewal_said_of_an_earlier_place_is_not_heard() -> None:
    """It was asked when the place had been taken back, and answered when there was another."""
    store = MemoryStore()
    store.room("w", 1)
    store.reply_ms = lambda step: 500 if step == "renew" else 0
    async with WaitingRoom(store).open() as room:
        batch = await room.batch("b")
        await asyncio.sleep(1)
        interactive = room.place("a")
        await batch.taken_back.wait()
        for _ in range(200):  # an abort takes its time
            await asyncio.sleep(0.01)
            if "renew" in [step for _, step, _ in store.calls[-1:]]:
                break
        batch.surrender()
        again = room.start(batch.wait_again())
        await (await interactive).end(150)
        await again
        await asyncio.sleep(0.7)
        assert not batch.taken_back.is_set()
        await batch.end(150)
    assert store.is_at_rest


@virtually
async def test_granted_and_asked_back_before_it_was_taken_up() -> None:
    """The grant's message comes late; by then the place has been asked back."""
    store = MemoryStore()
    store.room("w", 1)
    async with WaitingRoom(store).open() as room:
        first = await room.place("x")
        batch = room.batch("b")
        await asyncio.sleep(0.1)
        store.message_ms = 50
        await first.end(150)
        interactive = room.place("a")
        place = await interactive
        assert store.clock.monotonic_us() <= 250_000
        assert not batch.done()
        await place.end(150)
        await (await batch).end(150)
    assert store.is_at_rest


@virtually
async def test_what_was_taken_back_at_its_deadline_has_time_again() -> None:
    """It was us; and it is refused, unbilled, when that is over too."""
    store = MemoryStore()
    store.room("w", 1)
    async with WaitingRoom(store).open() as room:
        batch = await room.batch("b", wait_ms=1_000, max_queued=0)
        await asyncio.sleep(2)
        interactive = await asyncio.gather(room.place("a"), _go_back(room, batch))
        await asyncio.sleep(20)
        assert not interactive[1].done()
        await asyncio.sleep(20)
        with pytest.raises(WaitTooLong):
            await interactive[1]
        assert room.places.count == 1
        await interactive[0].end(150)
        await settle()
    assert store.is_at_rest


async def _go_back(room: WaitingRoom, batch: HeldPlace) -> "asyncio.Task[None]":
    await batch.taken_back.wait()
    assert batch.surrender()
    return room.start(batch.wait_again())


@virtually
async def test_a_place_that_was_not_asked_back_is_not_surrendered() -> None:
    store = MemoryStore()
    store.room("w", 1)
    async with WaitingRoom(store).open() as room:
        batch = await room.batch("b")
        assert not batch.surrender()
        assert batch.began()
        await batch.end(150)
    assert store.is_at_rest


@virtually
async def test_in_a_gateway_that_goes_down_it_does_not_wait_again() -> None:
    store = MemoryStore()
    store.room("w", 1)
    async with WaitingRoom(store).open() as room, WaitingRoom(store, "other").open() as other:
        batch = await room.batch("b")
        room.places.stop_all()
        interactive = other.place("a")
        await batch.taken_back.wait()
        assert batch.surrender()
        with pytest.raises(Overloaded) as refused:
            await batch.wait_again()
        assert "shutting down" in refused.value.message
        place = await interactive
        assert store.clock.monotonic_us() == 0
        assert room.places.count == 0
        await place.end(150)
        await room.places.until_told()
    assert store.is_at_rest


@virtually
async def test_what_was_taken_back_near_its_deadline_is_not_refused_for_what_is_predicted() -> None:
    """Its abort takes longer than what is left, and the pool's speed is known to be too low."""
    store = MemoryStore()
    store.room("w", 4)
    async with WaitingRoom(store).open() as room:
        first = [await room.place(f"a{number}", tenant="good") for number in range(4)]
        assert all(place.began() for place in first)
        await asyncio.sleep(20)
        await asyncio.gather(*(place.end(150) for place in first[1:]))
        batch = await room.batch("b", wait_ms=1_000, tenant="other")
        assert all([(await room.place(f"c{n}", tenant="good")).began() for n in range(2)])
        await asyncio.sleep(0.95)
        for number in range(30):
            room.place(f"d{number}", tenant="good", wait_ms=100_000)
        await batch.taken_back.wait()
        assert batch.surrender()
        await asyncio.sleep(0.2)
        again = room.start(batch.wait_again())
        asked_us = store.clock.monotonic_us()
        await asyncio.sleep(29)
        assert not again.done()
        await asyncio.sleep(2)
        with pytest.raises(WaitTooLong, match="no place within"):
            await again
        assert store.clock.monotonic_us() - asked_us == 31_000_000


@virtually
async def test_where_the_store_forgot_what_was_taken_back_it_has_its_time_all_the_same() -> None:
    """Its place has lapsed: it enters anew, and is not refused for what is predicted."""
    store = MemoryStore()
    store.room("w", 1)
    async with WaitingRoom(store).open() as room, WaitingRoom(store, "other").open() as other:
        first = await other.place("a")
        await asyncio.sleep(60)
        await first.end(150)
        batch = await room.batch("b", wait_ms=1_000, tenant="other")
        place = other.place("c")
        await batch.taken_back.wait()
        assert batch.surrender()
        store.step("m", lambda pool, now_ms: pool.leave("b", actual_cost=None, now_ms=now_ms))
        for number in range(9):
            other.place(f"d{number}", wait_ms=1_000_000)
        again = room.start(batch.wait_again())
        await asyncio.sleep(29)
        assert not again.done()
        await (await place).unused()
        await asyncio.sleep(2)
        with pytest.raises(WaitTooLong, match="no place within"):
            await again
