"""How many of a tenant may wait, parked ones included, counts at all gateways together."""

import asyncio

import pytest
from memory_pool_queue import MemoryStore
from virtual_time import virtually
from waiting_rooms import ParkingTenant, Slots, WaitingRoom, asked, settle

from gateway.errors import LimitReached


@virtually
async def test_who_waits_at_another_gateway_counts() -> None:
    """Its own limits have no room, and as many as may wait do so elsewhere: it is told of that."""
    store = MemoryStore()
    store.room("w", 9)
    async with WaitingRoom(store, "g1").open() as one, WaitingRoom(store, "g2").open() as two:
        for number in range(2):
            one.start(ParkingTenant(one, 0).ask(f"a{number}", max_queued=2))
        await settle()
        assert one.places.parked == 2
        with pytest.raises(LimitReached) as refused:
            await ParkingTenant(two, 0).ask("b", max_queued=2)
        assert (refused.value.type, two.places.parked, two.places.count) == ("queue", 0, 0)
        await settle()
        assert set(store.pools["m"].waiting) == {"a0", "a1"}
        assert store.pools["m"].places == {}


class Crossed(Slots):
    """Looks as if it had room, and takes a while to find that it has none."""

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self.asked_again = asyncio.Event()

    async def has_room(self) -> bool:
        self.looks += 1
        return True

    async def admit(self) -> str:
        if self.asks:
            self.asked_again.set()
        await asyncio.sleep(0.2)
        return await super().admit()


@virtually
async def test_who_was_parked_before_is_not_thrown_out_by_who_came_meanwhile() -> None:
    """While it has a place again another of its tenant begins to wait, and may: both wait then."""
    store = MemoryStore()
    store.room("w", 1)
    async with WaitingRoom(store, "g1").open() as one, WaitingRoom(store, "g2").open() as two:
        slots = Crossed(0)
        parked = one.start(one.places.admit(asked("a", max_queued=1), slots))
        await slots.asked_again.wait()
        late = two.place("late", max_queued=1)
        await settle()
        assert (set(store.pools["m"].waiting), set(store.pools["m"].places)) == ({"late"}, {"a"})
        with pytest.raises(LimitReached):
            await two.place("later", max_queued=1)
        await late
        assert not parked.done()
        assert store.pools["m"].waiting["a"].is_parked
        slots.limit = 1
        await late.result().end(150)
        place, _ = await parked
        await place.end(150)
    assert store.is_at_rest
