"""A tenant at its own limit that goes on asking: what it asks costs nobody a place, and nothing is
refused that its limits have room for."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
from memory_pool_queue import MemoryStore
from virtual_time import LoopClock, virtually
from waiting_rooms import ParkingTenant, Slots, WaitingRoom, asked

from gateway.errors import (
    InvalidRequest,
    LimitReached,
    Overloaded,
    QuotaExceeded,
    Unpriced,
    WeirError,
)
from gateway.serving.queue.refused import REMEMBERED_MS, LatelyRefused


class Window(Slots):
    """A limit of requests a minute: no wait helps."""

    def _refused(self) -> LimitReached:
        return LimitReached("the limit is of a minute", kind="requests", retry_after_ms=50_000)


class Slow(Window):
    """Which is asked as a store is."""

    async def has_room(self) -> bool:
        await asyncio.sleep(0.001)
        return await super().has_room()

    async def admit(self) -> str:
        await asyncio.sleep(0.001)
        return await super().admit()


class Budget(Slots):
    """It cannot be looked at, but only asked."""

    def __init__(self) -> None:
        super().__init__(0)
        self.of_budget: list[bool] = []

    async def admit(self) -> str:
        raise QuotaExceeded("the budget is spent")

    async def refusal(self, *, of_budget: bool = False) -> WeirError | None:  # type: ignore[override]
        self.of_budget.append(of_budget)
        return QuotaExceeded("the budget is spent") if of_budget else None


def entered(store: MemoryStore) -> list[str]:
    return [what for _, step, what in store.calls if step == "enter"]


async def refused(work: Coroutine[Any, Any, object]) -> WeirError:
    with pytest.raises(WeirError) as caught:
        await work
    return caught.value


@virtually
async def test_who_was_just_refused_gets_no_place_to_be_refused_again() -> None:
    """And the same is told, for as long as it goes on asking."""
    store = MemoryStore()
    store.room("w", 4)
    async with WaitingRoom(store).open() as room:
        tenant = ParkingTenant(room, Window(0))
        told = [await refused(tenant.ask("r0"))]
        for number in range(1, 50):
            await asyncio.sleep(0.1)
            told.append(await refused(tenant.ask(f"r{number}")))
        assert entered(store) == ["r0"]
        assert tenant.slots.asks == 1
        assert {(type(each), each.message) for each in told} == {
            (LimitReached, "the limit is of a minute")
        }
        assert room.places.count == 0


@virtually
async def test_where_there_is_room_again_it_is_admitted_at_once() -> None:
    """Its limit was raised, or something of it ended at another gateway, just after a refusal."""
    store = MemoryStore()
    store.room("w", 4)
    async with WaitingRoom(store).open() as room:
        tenant = ParkingTenant(room, 0)
        for number in range(20):
            tenant.slots.limit = tenant.slots.used
            await refused(tenant.ask(f"no{number}", max_queued=0))
            tenant.slots.limit += 1
            await tenant.settle(await tenant.ask(f"yes{number}", max_queued=0))
        await room.places.until_told()
    assert store.is_at_rest


@virtually
async def test_nobody_else_is_asked_first_nor_it_after_a_second() -> None:
    """Neither another tenant nor who was refused a while ago: one step of the store less."""
    store = MemoryStore()
    store.room("w", 4)
    async with WaitingRoom(store).open() as room:
        limited, other = ParkingTenant(room, Window(0)), ParkingTenant(room, 9, tenant="other")
        await refused(limited.ask("a"))
        await other.ask("b")
        assert (limited.slots.looks, other.slots.looks) == (0, 0)
        await refused(limited.ask("c"))
        assert limited.slots.looks == 1
        await asyncio.sleep(REMEMBERED_MS / 1000)
        await refused(limited.ask("d"))
        assert limited.slots.looks == 1
        assert entered(store) == ["a", "b", "d"]


@virtually
async def test_who_may_wait_for_its_limits_does() -> None:
    """Refused before or not: as many as may are parked, and served in turn."""
    store = MemoryStore()
    store.room("w", 4)
    async with WaitingRoom(store).open() as room:
        tenant = ParkingTenant(room, 1)
        held = await tenant.ask("held")
        waits = [room.start(tenant.ask(f"p{i}", max_queued=2)) for i in range(2)]
        await asyncio.sleep(0.1)
        assert room.places.parked == 2
        for number in range(20):
            error = await refused(tenant.ask(f"full{number}", max_queued=2))
            assert (type(error), getattr(error, "type", "")) == (LimitReached, "queue")
        assert not [name for name in entered(store) if name.startswith("full")]
        await tenant.settle(held)
        for each in waits:
            await tenant.settle(await each)
        await room.places.until_told()
    assert store.is_at_rest


@virtually
async def test_a_spent_budget_is_asked_and_not_looked_at() -> None:
    store = MemoryStore()
    store.room("w", 4)
    async with WaitingRoom(store).open() as room:
        budget = Budget()
        for name in "abc":
            assert isinstance(await refused(room.places.admit(asked(name), budget)), QuotaExceeded)
        assert (entered(store), budget.of_budget) == (["a"], [True, True])


@virtually
async def test_where_nobody_knows_it_asks_as_ever() -> None:
    """The store of the limits does not answer a look."""
    store = MemoryStore()
    store.room("w", 4)
    async with WaitingRoom(store).open() as room:
        tenant = ParkingTenant(room, Window(0))
        await refused(tenant.ask("a"))

        async def unknown() -> bool:
            raise Overloaded("nobody knows", code="admission_unavailable")

        tenant.slots.has_room = unknown  # type: ignore[method-assign]
        assert isinstance(await refused(tenant.ask("b")), LimitReached)
        assert entered(store) == ["a", "b"]


async def served_beside(flood_a_second: int) -> int:
    """How many requests of 200 ms a worker of four serves in 4 s, that is always full, beside so
    many refusals. Each reply of the stores takes 1 ms."""
    store = MemoryStore()
    store.room("w", 4)
    store.reply_ms = lambda step: 1
    served, loop = 0, asyncio.get_running_loop()
    async with WaitingRoom(store).open() as room:
        others, flood = ParkingTenant(room, 10**6, tenant="others"), ParkingTenant(room, Slow(0))

        async def client(name: int) -> None:
            nonlocal served
            while True:
                place = await others.ask(f"{name}-{served}")
                await asyncio.sleep(0.2)
                served += 1
                await others.settle(place)

        for name in range(16):
            room.start(client(name))
        ends_s = loop.time() + 4
        for number in range(4 * flood_a_second):
            await asyncio.sleep(1 / flood_a_second)
            room.start(refused(flood.ask(f"flood{number}")))
        await asyncio.sleep(max(0, ends_s - loop.time()))
    return served


@virtually
async def test_a_flood_of_refusals_idles_no_worker() -> None:
    """INV-10: it costs at most what one refusal does."""
    assert await served_beside(200) >= await served_beside(0) - 1


@virtually
@pytest.mark.parametrize(
    ("error", "is_remembered"),
    [
        (LimitReached("no", kind="tokens", retry_after_ms=1), True),
        (QuotaExceeded("no"), True),
        (InvalidRequest("never"), True),
        (Overloaded("busy", code="no_capacity"), False),
        (Unpriced("no price"), False),
        (LimitReached("too many wait", kind="queue", retry_after_ms=1), False),
        (RuntimeError(), False),
    ],
)
async def test_what_limits_say_is_remembered_and_nothing_else(
    error: Exception, *, is_remembered: bool
) -> None:
    """And of how many tenants is bounded by how many are refused in a second."""
    lately = LatelyRefused(LoopClock())
    for number in range(100):
        lately.note(f"tenant{number}", error)
        await asyncio.sleep(REMEMBERED_MS / 1000 / 10)
        assert len(lately._until_us) <= 10
    assert bool(lately._until_us) is is_remembered
