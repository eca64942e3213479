"""Parked at one gateway, and what it waits for ends at another."""

import asyncio

import pytest
from memory_pool_queue import MemoryStore
from virtual_time import virtually
from waiting_rooms import ParkingTenant, Slots, WaitingRoom


@pytest.mark.parametrize("key", ["k1", "k2"])
@pytest.mark.parametrize("is_lost", [False, True])
def test_what_ends_at_another_gateway_is_heard(key: str, *, is_lost: bool) -> None:
    """Of its own key or of another one; where the message is lost a look comes in its time."""

    @virtually
    async def test() -> None:
        store = MemoryStore()
        store.message_ms = 2
        store.loses_message = lambda message: is_lost and message.is_look
        store.room("w", 50)
        async with WaitingRoom(store, "g1").open() as one, WaitingRoom(store, "g2").open() as two:
            slots = Slots(1)
            there, here = ParkingTenant(one, slots), ParkingTenant(two, slots)
            running = await there.ask("a", key=key)
            waits = two.start(here.ask("b"))
            await asyncio.sleep(3.1)
            await there.settle(running)
            place = await waits
            waited_us = store.clock.monotonic_us() - 3_100_000
            assert waited_us > 100_000 if is_lost else waited_us <= 30_000
            assert waited_us <= 500_000
            await here.settle(place)
        assert store.is_at_rest

    test()


@virtually
async def test_of_one_lot_at_two_gateways_the_earliest_goes_first() -> None:
    """Whichever of them looks."""
    store = MemoryStore()
    store.message_ms = 2
    store.room("w", 50)
    async with WaitingRoom(store, "g1").open() as one, WaitingRoom(store, "g2").open() as two:
        slots = Slots(1, of_key=True)
        gateways = [ParkingTenant(one, slots), ParkingTenant(two, slots)]
        running = await gateways[0].ask("a")
        served: list[int] = []

        async def serve(number: int) -> None:
            tenant = gateways[number % 2]
            place = await tenant.ask(f"r{number}", wait_ms=60_000 + number)
            served.append(number)
            await asyncio.sleep(1)
            await tenant.settle(place)

        tasks = [(two if at % 2 else one).start(serve(at)) for at in (5, 2, 4, 1, 3, 0)]
        await asyncio.sleep(1)
        await gateways[0].settle(running)
        await asyncio.gather(*tasks)
        assert served == list(range(6))
        assert slots.most == 1
        assert store.clock.monotonic_us() <= 7_000_000 + 6 * 60_000
    assert store.is_at_rest


@virtually
async def test_a_key_held_up_at_another_gateway_holds_up_no_other_key() -> None:
    """The store lets the lot's own first wait for a place, not its tenant's."""
    store = MemoryStore()
    store.room("w", 50)
    async with WaitingRoom(store, "g1").open() as one, WaitingRoom(store, "g2").open() as two:
        full = ParkingTenant(one, Slots(0, of_key=True), key="k1", wait_ms=40_000)
        held_up = one.start(full.ask("a"))
        free = ParkingTenant(two, Slots(1, of_key=True), key="k2", wait_ms=50_000)
        running = await free.ask("b1")
        waits = two.start(free.ask("b2"))
        await asyncio.sleep(1)
        await free.settle(running)
        place = await waits
        assert store.clock.monotonic_us() <= 1_020_000
        assert full.slots.asks == 1
        await free.settle(place)
        held_up.cancel()
        await asyncio.sleep(0.1)
    assert store.is_at_rest
