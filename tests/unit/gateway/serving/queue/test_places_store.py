"""A store of queues that loses messages and replies, comes back, and comes back empty."""

import asyncio
from collections.abc import Sequence

import pytest
from memory_pool_queue import MemoryStore
from virtual_time import virtually
from waiting_rooms import WaitingRoom, asked, settle

from gateway.domain.queue.tickets import Answer, PlaceState
from gateway.errors import LimitReached
from gateway.serving.queue.held import HeldPlace


async def away(store: MemoryStore, room: WaitingRoom) -> None:
    """The store goes, and that is known."""
    store.away = True
    while room.watch.is_open:  # noqa: ASYNC110 - nothing tells of it
        await asyncio.sleep(0.01)


def calls(store: MemoryStore, name: str) -> list[str]:
    return [what for _, step, what in store.calls if step == name]


@virtually
async def test_a_lost_message_of_a_grant_is_told_by_a_renewal() -> None:
    """Within the second in which the place would pass on."""
    store = MemoryStore()
    store.room("w", 1)
    async with WaitingRoom(store).open() as room:
        held = await room.place("a")
        waits = room.place("b")
        await asyncio.sleep(0.3)
        store.loses_message = lambda message: True
        await held.end(150)
        place = await waits
        assert 0 < place.queue_ms <= 300 + 600
        assert calls(store, "enter") == ["a", "b"]
        await place.end(150)
    assert store.is_at_rest


@virtually
async def test_where_it_stands_is_asked_each_two_seconds_and_kept() -> None:
    """With thousands that wait it is what a renewal costs the store."""
    store = MemoryStore()
    store.room("w", 1)
    async with WaitingRoom(store).open() as room:
        asked_of: list[bool] = []
        renew = room.queue.renew

        async def counted(pool: str, ids: Sequence[str], *, standing: bool) -> list[Answer]:
            asked_of.append(standing)
            return await renew(pool, ids, standing=standing)

        room.queue.renew = counted  # type: ignore[method-assign, assignment]
        held = await room.place("a")
        waits, behind = room.place("b"), room.place("c", max_queued=5)
        await asyncio.sleep(8)
        assert asked_of.count(True) == pytest.approx(4, abs=1)
        assert asked_of.count(False) == pytest.approx(12, abs=2)
        with pytest.raises(LimitReached) as refused:
            await room.places.place(asked("d", max_queued=2))
        assert refused.value.retry_after_ms is not None
        await held.end(150)
        for task in (waits, behind):
            await (await task).end(150)
    assert store.is_at_rest


@virtually
async def test_a_grant_that_was_heard_too_late_is_asked_for_again() -> None:
    """The store let it go after a second; it enters again for what is left of its wait."""
    store = MemoryStore()
    store.room("w", 1)
    async with WaitingRoom(store, renew_ms=60_000).open() as room:
        held = await room.place("a")
        waits = room.place("b", wait_ms=5_000)
        await asyncio.sleep(0.5)
        store.message_ms = 1_500
        await held.end(150)
        place = await waits
        assert place.queue_ms == 2_000
        assert calls(store, "enter") == ["a", "b", "b"]
        ticket = store.pools["m"].places["b"].ticket
        assert ticket.deadline_ms - ticket.entered_ms == 5_000
        await place.end(150)
    assert store.is_at_rest


@pytest.mark.parametrize("step", ["enter", "take_up", "renew", "leave", "park"])
def test_a_lost_reply_is_asked_for_again(step: str) -> None:
    """And nothing is held twice, or left behind."""

    @virtually
    async def test() -> None:
        store = MemoryStore()
        store.room("w", 1)
        lost: list[str] = []

        def loses(name: str) -> bool:
            if name == step and len(lost) < 1:
                lost.append(name)
                return True
            return False

        store.loses_reply = loses
        async with WaitingRoom(store).open() as room:
            held = await room.place("a")
            waits = room.place("b")
            await asyncio.sleep(1.2)
            await held.end(150)
            await (await waits).end(150)
            assert store.clock.monotonic_us() == 1_200_000
            assert lost or step == "park"
        assert store.is_at_rest

    test()


@pytest.mark.parametrize("forgets", [False, True])
def test_when_the_store_is_back_it_is_told_what_runs_before_who_waits(forgets: bool) -> None:
    """And, where it came back empty, those who wait in the order of their deadlines."""

    @virtually
    async def test() -> None:
        store = MemoryStore()
        store.room("w", 2)
        async with WaitingRoom(store).open() as room:
            running = [await room.batch(f"run{i}") for i in range(2)]
            for place in running:
                place.began()
            waits = [
                room.batch(f"wait{i}", wait_ms=600_000 - 1_000 * i, tenant=f"t{i}")
                for i in range(5)
            ]
            await asyncio.sleep(0.3)
            await away(store, room)
            await asyncio.sleep(3)
            if forgets:
                store.lose_everything()
                store.room("w", 2)
            store.calls.clear()
            store.away = False
            await asyncio.sleep(0.9)
            steps = [call[1] for call in store.calls]
            assert steps[0] == "resume"
            ordered = [f"wait{i}" for i in reversed(range(5))]
            assert calls(store, "enter") == (ordered if forgets else [])
            assert set(store.pools["m"].waiting) == set(ordered)
            assert set(store.pools["m"].places) == {"run0", "run1"}
            assert all(p.state is PlaceState.BEGAN for p in store.pools["m"].places.values())
            for place in running:
                await place.end(150)
            for task in waits:
                await (await task).end(150)
        assert store.is_at_rest

    test()


@virtually
async def test_a_store_that_came_back_empty_unnoticed_is_told_by_renewals() -> None:
    store = MemoryStore()
    store.room("w", 1)
    async with WaitingRoom(store).open() as room:
        held = await room.place("a")
        held.began()
        waits = room.place("b")
        await asyncio.sleep(0.3)
        store.lose_everything()
        await asyncio.sleep(0.8)
        pool = store.pools["m"]
        assert (set(pool.places), set(pool.waiting)) == ({"a"}, {"b"})
        assert store.clock.now_ms() - pool.waiting["b"].ticket.entered_ms == 1_100
        store.room("w", 1)
        await held.end(150)
        await (await waits).end(150)
    assert store.is_at_rest


@virtually
async def test_what_ended_while_the_store_was_away_is_told_when_it_is_back() -> None:
    """With what it cost."""
    store = MemoryStore()
    store.room("w", 2)
    async with WaitingRoom(store).open() as room:
        places = [await room.place(name) for name in ("a", "b")]
        await away(store, room)
        await places[0].end(150)
        await asyncio.sleep(1)
        assert set(store.pools["m"].places) == {"a", "b"}
        store.away = False
        await asyncio.sleep(1)
        assert set(store.pools["m"].places) == {"b"}
        assert store.pools["m"].speed.cost == 150
        await places[1].end(150)
    assert store.is_at_rest


@virtually
async def test_a_place_lives_as_long_as_it_is_held() -> None:
    """For minutes, interactive or batch, with tokens or without."""
    store = MemoryStore()
    store.room("w", 4)
    async with WaitingRoom(store).open() as room:
        held: list[HeldPlace] = [
            await room.place("a"), await room.place("b"), await room.batch("c"),
            await room.batch("d"),
        ]  # fmt: skip
        held[0].began()
        held[2].began()
        granted = {name: place.granted_ms for name, place in store.pools["m"].places.items()}
        await asyncio.sleep(300)
        assert not calls(store, "resume")
        assert granted == {
            name: place.granted_ms for name, place in store.pools["m"].places.items()
        }
        for place in held:
            await place.end(150)
    assert store.is_at_rest


@virtually
async def test_a_place_moves_with_its_request() -> None:
    """Its worker failed, and it is tried on another."""
    store = MemoryStore()
    for name in ("v", "w"):
        store.room(name, 2)
    async with WaitingRoom(store).open() as room:
        place = await room.place("a")
        other = "w" if place.worker == "v" else "v"
        place.runs_on(other)
        assert place.worker is not None
        await settle()
        assert place.worker == other
        assert store.pools["m"].places["a"].worker == other
        assert store.pools["m"].rooms[other].running == 1
        await place.end(150)
    assert store.is_at_rest
