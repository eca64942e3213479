"""A store that is back while many wait: what runs is known to it all the while, and only whom it
forgot enters again."""

import asyncio

import pytest
from memory_pool_queue import MemoryStore
from virtual_time import virtually
from waiting_rooms import WaitingRoom

from gateway.serving.queue.held import HeldPlace

RUNNING = [f"run{index}" for index in range(4)]


async def full(store: MemoryStore, room: WaitingRoom, waiting: int) -> list[HeldPlace]:
    """A worker of four on which four run, and so many that wait."""
    store.room("w", len(RUNNING))
    held = [await room.batch(name) for name in RUNNING]
    for place in held:
        place.began()
    for index in range(waiting):
        room.batch(f"wait{index:04}", tenant=f"t{index % 7}")
    await asyncio.sleep(0.3)
    assert len(store.pools["m"].waiting) == waiting
    return held


async def away_and_back(store: MemoryStore, room: WaitingRoom, *, forgets: bool = False) -> None:
    """It goes, and that is known; it comes back and knows its workers."""
    store.away = True
    while room.watch.is_open:  # noqa: ASYNC110 - nothing tells of it
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.3)
    if forgets:
        store.lose_everything()
        store.tell_workers()
    store.calls.clear()
    store.away = False


async def assert_never_too_many(store: MemoryStore, for_s: float) -> None:
    """Nobody is granted a worker that is full, and the store knows what runs there."""
    until_us = store.clock.monotonic_us() + for_s * 1e6
    while not store.calls:  # noqa: ASYNC110 - nothing tells of it
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.1)
    while store.clock.monotonic_us() < until_us:
        assert set(store.pools["m"].places) == set(RUNNING)
        await asyncio.sleep(0.1)


def entered(store: MemoryStore) -> list[str]:
    return [what for _, step, what in store.calls if step == "enter"]


@pytest.mark.parametrize("forgets", [False, True])
def test_many_are_told_of_before_a_place_lapses(forgets: bool) -> None:
    """150, of a store that takes 20 ms for each reply: one after the other that is longer than a
    place lives."""

    @virtually
    async def test() -> None:
        store = MemoryStore(ttl_ms=2_000)
        async with WaitingRoom(store, renew_began_ms=400).open() as room:
            await full(store, room, 150)
            store.reply_ms = lambda step: 20
            await away_and_back(store, room, forgets=forgets)
            await assert_never_too_many(store, 5)
            assert len(entered(store)) == (150 if forgets else 0)
            assert len(store.pools["m"].waiting) == 150

    test()


@virtually
async def test_what_runs_is_renewed_while_others_are_told_of() -> None:
    """That takes longer than a place lives."""
    store = MemoryStore(ttl_ms=1_000)
    async with WaitingRoom(store, renew_ms=100, renew_began_ms=200).open() as room:
        await full(store, room, 256)
        store.reply_ms = lambda step: 300 if step == "enter" else 5
        await away_and_back(store, room, forgets=True)
        await assert_never_too_many(store, 3)
        assert len(store.pools["m"].waiting) == 256


@virtually
async def test_only_those_that_lapsed_meanwhile_enter_again() -> None:
    """In the order of their deadlines; the others have kept theirs."""
    store = MemoryStore()
    async with WaitingRoom(store).open() as room:
        await full(store, room, 100)
        lost = [f"wait{index:04}" for index in range(5, 90, 7)]
        for name in lost:
            store.step("m", lambda pool, now_ms, name=name: pool.leave(  # type: ignore[misc]
                name, actual_cost=None, now_ms=now_ms
            ))  # fmt: skip
        await away_and_back(store, room)
        await assert_never_too_many(store, 2)
        assert entered(store) == lost
        assert len(store.pools["m"].waiting) == 100


@virtually
async def test_a_store_that_was_emptied_unnoticed_is_told_first_what_runs() -> None:
    """Another gateway told it of the workers at once: who enters again is granted none."""
    store = MemoryStore()
    async with WaitingRoom(store).open() as room:
        await full(store, room, 20)
        store.calls.clear()
        store.lose_everything()
        store.tell_workers()
        await asyncio.sleep(1.5)
        assert (set(store.pools["m"].places), len(entered(store))) == (set(RUNNING), 20)
        assert [step for _, step, _ in store.calls].index("resume") == 1
