"""Who is parked waits for its own limits, and for no other key of its tenant; which lot is looked
at first."""

import asyncio

from memory_pool_queue import MemoryStore
from virtual_time import virtually
from waiting_rooms import ParkingTenant, Slots, WaitingRoom, settle

LOOK_MS = 20
"""Between two looks, as production has it."""


@virtually
async def test_a_key_at_its_own_limit_holds_up_no_other_key() -> None:
    """Its request is the earlier one, and has room only much later."""
    store = MemoryStore()
    store.room("w", 50)
    async with WaitingRoom(store).open() as room:
        one = ParkingTenant(room, Slots(1, of_key=True), key="k1", wait_ms=60_000)
        two = ParkingTenant(room, Slots(1, of_key=True), key="k2", wait_ms=60_000)
        long, short = await one.ask("a1"), await two.ask("b1")
        held_up = room.start(one.ask("a2", wait_ms=50_000))
        waits = room.start(two.ask("b2"))
        await asyncio.sleep(0.7)
        await two.settle(short)
        place = await waits
        assert store.clock.monotonic_us() <= 700_000 + LOOK_MS * 1_000
        assert not held_up.done()
        await two.settle(place)
        await asyncio.sleep(5)
        assert not held_up.done()
        await one.settle(long)
        await one.settle(await held_up)
        assert store.clock.monotonic_us() < 5_800_000
    assert store.is_at_rest


@virtually
async def test_of_several_keys_the_earliest_deadline_has_the_tenants_room() -> None:
    """The limit that is short is the tenant's: whichever key settled, and whoever came first."""
    store = MemoryStore()
    store.room("w", 50)
    async with WaitingRoom(store).open() as room:
        tenant = ParkingTenant(room, 1)
        running = await tenant.ask("a", key="k0")
        served: list[str] = []

        async def serve(request_id: str, key: str, wait_ms: int) -> None:
            place = await tenant.ask(request_id, key=key, wait_ms=wait_ms)
            served.append(request_id)
            await asyncio.sleep(1)
            await tenant.settle(place)

        asks = [(f"r{at}", f"k{at % 3}", 60_000 - at * 1_000) for at in range(9)]
        tasks = [room.start(serve(*ask)) for ask in asks]
        await asyncio.sleep(1)
        await tenant.settle(running)
        await asyncio.gather(*tasks)
        assert served == [f"r{at}" for at in reversed(range(9))]
        assert tenant.slots.most == 1
        # One a second; each began within two looks of the end before.
        assert store.clock.monotonic_us() <= 10_000_000 + 9 * 2 * LOOK_MS * 1_000
    assert store.is_at_rest


@virtually
async def test_one_that_has_no_room_goes_behind_what_the_same_end_woke() -> None:
    """Its deadline is the earliest, and it never has room; others end all the time."""
    store = MemoryStore()
    store.room("w", 50)
    async with WaitingRoom(store).open() as room:
        never = ParkingTenant(room, 0, key="large", wait_ms=20_000)
        too_large = room.start(never.ask("large"))
        tenant = ParkingTenant(room, 1, key="small", wait_ms=60_000)
        running = await tenant.ask("a")
        waits = room.start(tenant.ask("b"))

        async def others_end() -> None:
            while True:
                await asyncio.sleep(0.003)
                room.places.settled("acme", "other")

        room.start(others_end())
        await asyncio.sleep(3)
        await tenant.settle(running)
        place = await waits
        assert store.clock.monotonic_us() <= 3_000_000 + 3 * LOOK_MS * 1_000
        await tenant.settle(place)
        too_large.cancel()
        await settle()
    assert store.is_at_rest


@virtually
async def test_what_ended_is_looked_at_before_what_is_merely_due() -> None:
    """400 other tenants are parked, whose limits are looked at when nothing else is."""
    store = MemoryStore()
    store.room("w", 4_000)
    async with WaitingRoom(store).open() as room:
        others = [ParkingTenant(room, 0, tenant=f"t{i}", wait_ms=60_000) for i in range(400)]
        waits = [room.start(other.ask(f"r{i}")) for i, other in enumerate(others)]
        tenant = ParkingTenant(room, 1, tenant="x", wait_ms=60_000)
        running = await tenant.ask("a")
        waits_for_own = room.start(tenant.ask("b"))
        await asyncio.sleep(20)
        looks = sum(other.slots.looks for other in others)
        assert 950 <= looks <= 1_001
        await tenant.settle(running)
        place = await waits_for_own
        assert store.clock.monotonic_us() <= 20_000_000 + 2 * LOOK_MS * 1_000
        await tenant.settle(place)
        for task in waits:
            task.cancel()
        await settle()
    assert store.is_at_rest


@virtually
async def test_what_is_due_has_its_share_where_others_are_woken_all_the_time() -> None:
    """More ends than there are looks, and each looks in vain; a limit that was raised, of which
    nobody hears, is seen all the same. No more is looked than may be."""
    store = MemoryStore()
    store.room("w", 50)
    async with WaitingRoom(store).open() as room:
        busy = [ParkingTenant(room, 0, tenant=f"t{i}", wait_ms=60_000) for i in range(3)]
        waits = [room.start(each.ask(f"r{i}")) for i, each in enumerate(busy)]
        raised = ParkingTenant(room, 0, tenant="x", wait_ms=60_000)
        waits_for_limit = room.start(raised.ask("a"))

        async def end() -> None:
            while True:
                await asyncio.sleep(0.005)
                for each in range(3):
                    room.places.settled(f"t{each}", "k1")

        room.start(end())
        await asyncio.sleep(5)
        looks = [each.slots.looks for each in busy]
        assert sum(looks) <= 251
        assert max(looks) - min(looks) <= 2 + 5 * 50 // 5  # those due are of them, too
        raised.slots.limit = 1
        place = await waits_for_limit
        assert store.clock.monotonic_us() <= 5_000_000 + 500_000 + 4 * 5 * LOOK_MS * 1_000
        await raised.settle(place)
        for task in waits:
            task.cancel()
        await settle()
    assert store.is_at_rest


@virtually
async def test_what_other_keys_do_wakes_none_that_waits_for_its_own_limit() -> None:
    """So a tenant of many keys spends no looks on those that cannot have room."""
    store = MemoryStore()
    store.room("w", 200)
    async with WaitingRoom(store, look_again_ms=30_000).open() as room:
        keys = [
            ParkingTenant(room, Slots(1, of_key=True), key=f"k{i}", wait_ms=60_000)
            for i in range(40)
        ]
        running = [await key.ask(f"a{i}") for i, key in enumerate(keys)]
        # The last one's deadline comes last, and it is the one that ends.
        waits = [room.start(key.ask(f"b{i}", wait_ms=50_000 + i)) for i, key in enumerate(keys)]
        await asyncio.sleep(1)
        await keys[-1].settle(running[-1])
        place = await waits[-1]
        assert store.clock.monotonic_us() <= 1_000_000 + LOOK_MS * 1_000
        assert [key.slots.looks for key in keys[:-1]] == [0] * 39
        await keys[-1].settle(place)
        for task in waits:
            task.cancel()
        for key, held in zip(keys[:-1], running[:-1], strict=True):
            await key.settle(held)
        await settle()
    assert store.is_at_rest
