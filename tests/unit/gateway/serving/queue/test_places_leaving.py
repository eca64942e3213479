"""Nothing stays behind, whoever goes and whenever."""

import asyncio
import functools
import types
from collections.abc import Callable, Coroutine, Generator
from typing import Any

import pytest
from memory_pool_queue import MemoryStore
from scripted_engine import RecordingConnection
from virtual_time import virtually
from waiting_rooms import Slots, WaitingRoom, asked, batch, settle

from gateway.serving.ports import ClientGone
from gateway.serving.queue.held import HeldPlace

Way = Callable[[WaitingRoom], Coroutine[Any, Any, Any]]


async def at_once(room: WaitingRoom) -> None:
    room.store.room("w", 1)
    await (await room.places.place(asked("a"))).end(150)


async def after_a_wait(room: WaitingRoom) -> None:
    room.store.room("w", 1)
    first = await room.places.place(asked("first"))
    asyncio.get_running_loop().call_later(0.3, lambda: room.start(first.end(150)))
    await (await room.places.place(asked("a"))).end(150)


async def parked(room: WaitingRoom) -> None:
    room.store.room("w", 1)
    slots = Slots(0)

    def free() -> None:
        slots.limit = 1
        room.places.settled("acme")

    asyncio.get_running_loop().call_later(0.3, free)
    place, _ = await room.places.admit(asked("a"), slots)
    await place.end(150)


async def taken_back(room: WaitingRoom) -> None:
    room.store.room("w", 1)
    place = await room.places.place(batch("a"))

    async def interactive() -> None:
        other = await room.places.place(asked("first"))
        await asyncio.sleep(0.2)
        await other.end(150)

    room.start(interactive())
    try:
        await place.taken_back.wait()
        assert place.surrender()
        await place.wait_again()
        place.began()
    finally:
        await place.end(150)


@types.coroutine
def stopping_at(
    work: Coroutine[Any, Any, None], stop: Callable[["asyncio.Future[Any] | None"], None]
) -> Generator[Any, Any, None]:
    """Run it, and tell each future that it waits for, before it does; None: a turn of the loop."""
    steps = work.__await__()
    step = steps.__next__
    while True:
        try:
            future = step()
        except StopIteration:
            return
        stop(future)
        try:
            yield future
        except BaseException as error:  # noqa: BLE001 - handed on
            step = functools.partial(steps.throw, error)
        else:
            step = steps.__next__


@pytest.mark.parametrize("slow", ["", "enter", "take_up", "park", "give_back"])
@pytest.mark.parametrize("when", ["at once", "soon", "late"])
@pytest.mark.parametrize("way", [at_once, after_a_wait, parked, taken_back])
def test_a_cancellation_at_any_await_leaves_nothing(way: Way, when: str, slow: str) -> None:
    """Cancelled at each await: while it waits or, late, with what it waited for at hand. Of the
    steps at the store one is slow, so that a leave could overtake it."""
    awaits = 0

    @virtually
    async def cancelled_at(number: int) -> None:
        nonlocal awaits
        awaits = 0

        def stop(future: "asyncio.Future[Any] | None") -> None:
            nonlocal awaits
            awaits += 1
            if awaits != number:
                return
            if when == "late" and future is not None:
                future.add_done_callback(lambda future: task.cancel())
            else:
                delay_s = 0.02 if when == "soon" else 0
                asyncio.get_running_loop().call_later(delay_s, task.cancel)

        async def stopped() -> None:
            await stopping_at(way(room), stop)

        store = MemoryStore()
        store.delay_ms = lambda step: 40 if step == slow else 0
        async with WaitingRoom(store).open() as room:
            task = asyncio.create_task(stopped())
            await asyncio.gather(task, return_exceptions=True)
            assert task.cancelled() or task.exception() is None
            if when != "soon":
                assert task.cancelled() == (awaits >= number)
            await asyncio.sleep(1.5)  # what else was started ends
            assert store.is_at_rest
            assert room.places.count == room.places.parked == 0

    number = 1
    cancelled_at(number)
    while awaits >= number:
        number += 1
        cancelled_at(number)
    assert number > WAYS[way]


WAYS: dict[Way, int] = {at_once: 2, after_a_wait: 4, parked: 6, taken_back: 6}
"""Awaits that each has at least."""


@pytest.mark.parametrize("slow", ["resume", "move", "began"])
def test_what_is_told_of_a_place_is_not_overtaken_by_its_end(slow: str) -> None:
    """Else the store would be told of a run that is no more."""

    @virtually
    async def test() -> None:
        store = MemoryStore()
        for name in ("v", "w"):
            store.room(name, 1)
        async with WaitingRoom(store).open() as room:
            place = await room.batch("a")
            store.delay_ms = lambda step: 50 if step == slow else 0
            if slow == "resume":
                store.step("m", lambda pool, now: pool.leave("a", actual_cost=None, now_ms=now))
            elif slow == "move":
                place.runs_on("v" if place.worker == "w" else "w")
            else:
                place.began()
            while not place.entry.is_busy or place.entry.steps < 2:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            await place.end(150)
            await asyncio.sleep(0.1)
            assert slow in [step for _, step, _ in store.calls]
            assert store.is_at_rest

    test()


@pytest.mark.parametrize("reply_takes_turns", range(6))
def test_a_client_that_leaves_at_the_instant_of_the_grant(reply_takes_turns: int) -> None:
    """The place goes to the next."""

    @virtually
    async def test() -> None:
        store = MemoryStore()
        store.room("w", 1)
        async with WaitingRoom(store).open() as room:
            held = await room.place("a")
            client = RecordingConnection()
            second = room.start(room.places.place(asked("b"), client))
            third = room.place("c")
            await asyncio.sleep(0.1)
            ending = room.start(held.end(150))
            for _ in range(reply_takes_turns):
                await asyncio.sleep(0)
            client.leave()
            outcome = (await asyncio.gather(second, return_exceptions=True))[0]
            if isinstance(outcome, HeldPlace):
                await outcome.unused()
            else:
                assert isinstance(outcome, ClientGone)
            place = await third
            assert store.clock.monotonic_us() == 100_000
            await ending
            await place.end(150)
        assert store.is_at_rest

    test()


@virtually
async def test_a_place_ends_once() -> None:
    store = MemoryStore()
    store.room("w", 1)
    async with WaitingRoom(store).open() as room:
        place = await room.place("a")
        await asyncio.gather(place.end(150), place.unused(), place.end(7))
        await place.end(9)
        assert [call[1:] for call in store.calls].count(("leave", "a")) == 1
        assert not place.began()
    assert store.is_at_rest


@virtually
async def test_a_place_that_is_ended_while_cancelled_is_told_all_the_same() -> None:
    store = MemoryStore()
    store.room("w", 1)
    async with WaitingRoom(store).open() as room:
        place = await room.place("a")
        ending = asyncio.create_task(place.end(150))
        await asyncio.sleep(0)
        ending.cancel()
        await settle()
        assert store.is_at_rest
        assert ending.cancelled()
