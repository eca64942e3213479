"""When the limits of parked requests are looked at, and how often."""

import asyncio

from memory_pool_queue import MemoryStore
from virtual_time import virtually
from waiting_rooms import ParkingTenant, Slots, WaitingRoom, asked, settle

from gateway.errors import LimitReached


@virtually
async def test_limits_that_free_up_elsewhere_are_seen_by_a_paced_look() -> None:
    """Another gateway settled, and this one hears nothing of it."""
    store = MemoryStore()
    store.room("w", 4)
    async with WaitingRoom(store, look_again_ms=500).open() as room:
        tenant = ParkingTenant(room, 0)
        waits = room.start(tenant.ask("a"))
        await asyncio.sleep(1.7)
        tenant.slots.limit = 1
        place = await waits
        assert store.clock.monotonic_us() == 2_000_000
        assert tenant.slots.asks == 2  # looks in between asked for no place
        await tenant.settle(place)
    assert store.is_at_rest


@virtually
async def test_a_computed_retry_after_is_when_it_is_tried() -> None:
    class Minute(Slots):
        async def admit(self) -> str:
            if asyncio.get_running_loop().time() < 4.2:
                raise LimitReached("tokens", kind="tokens", retry_after_ms=4_200)
            return "a lease"

        async def has_room(self) -> bool:
            self.looks += 1
            return asyncio.get_running_loop().time() >= 4.2

    store = MemoryStore()
    store.room("w", 4)
    async with WaitingRoom(store).open() as room:
        minute = Minute(1)
        place, _ = await room.places.admit(asked("a"), minute)
        assert (store.clock.monotonic_us(), minute.looks) == (4_202_000, 1)
        await place.end(150)
    assert store.is_at_rest


@virtually
async def test_looks_are_paced_over_all_tenants() -> None:
    """100 tenants are parked: 20 looks a second, not 200."""
    store = MemoryStore()
    store.room("w", 400)
    async with WaitingRoom(store, looks_per_s=20, look_again_ms=500).open() as room:
        tenants = [ParkingTenant(room, 0, tenant=f"t{i}") for i in range(100)]
        waits = [
            room.start(tenant.ask(f"r{i}", wait_ms=60_000)) for i, tenant in enumerate(tenants)
        ]
        await asyncio.sleep(10.5)
        looks = [tenant.slots.looks for tenant in tenants]
        assert 190 <= sum(looks) <= 202
        assert max(looks) - min(looks) <= 1  # whoever was looked at longest ago is next
        for task in waits:
            task.cancel()
        await settle()
    assert store.is_at_rest


@virtually
async def test_a_limit_that_rises_admits_one_after_another() -> None:
    """After the first, the next need no look of their own time."""
    store = MemoryStore()
    store.room("w", 50)
    async with WaitingRoom(store, look_again_ms=5_000).open() as room:
        tenant = ParkingTenant(room, 0)
        waits = [room.start(tenant.ask(f"r{i}")) for i in range(4)]
        await asyncio.sleep(1)
        tenant.slots.limit = 3
        await asyncio.gather(*waits[:3])
        assert store.clock.monotonic_us() < 5_100_000
        assert not waits[3].done()
        for task in waits[:3]:
            await tenant.settle(task.result())
        await tenant.settle(await waits[3])
    assert store.is_at_rest
