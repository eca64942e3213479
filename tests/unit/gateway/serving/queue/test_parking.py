"""Who has a place and whose tenant has no room waits for that, and for nobody else."""

import asyncio

import pytest
from memory_pool_queue import MemoryStore
from virtual_time import virtually
from waiting_rooms import ParkingTenant, Slots, WaitingRoom, asked, settle

from gateway.errors import InvalidRequest, LimitReached, QuotaExceeded


@virtually
async def test_it_is_parked_until_something_of_its_tenant_is_settled() -> None:
    store = MemoryStore()
    store.room("w", 4)
    async with WaitingRoom(store).open() as room:
        tenant = ParkingTenant(room, 1)
        first = await tenant.ask("a")
        second = room.start(tenant.ask("b"))
        await asyncio.sleep(3.2)
        assert store.pools["m"].waiting["b"].is_parked
        assert "b" not in store.pools["m"].places
        assert room.places.parked == 1
        await tenant.settle(first)
        place = await second
        assert store.clock.monotonic_us() == 3_200_000
        assert place.queue_ms == 3_200
        assert room.places.parked == 0
        await tenant.settle(place)
    assert store.is_at_rest
    assert tenant.slots.most == 1


@virtually
async def test_a_parked_request_holds_up_nobody_else() -> None:
    store = MemoryStore()
    store.room("w", 1)
    async with WaitingRoom(store).open() as room:
        parked = room.start(ParkingTenant(room, 0).ask("a"))
        await asyncio.sleep(0.1)
        place = await ParkingTenant(room, 1, tenant="globex").ask("b")
        assert store.clock.monotonic_us() == 100_000
        parked.cancel()
        await place.end(150)
        await settle()
    assert store.is_at_rest


@virtually
async def test_parked_until_its_deadline_is_the_refusal_of_its_limit() -> None:
    store = MemoryStore()
    store.room("w", 4)
    async with WaitingRoom(store).open() as room:
        tenant = ParkingTenant(room, 0)
        with pytest.raises(LimitReached) as refused:
            await tenant.ask("a", wait_ms=4_000)
        assert store.clock.monotonic_us() == 4_000_000
        assert (refused.value.type, refused.value.message) == ("sequences", "the limit is 0")
        assert refused.value.retry_after_ms == 1_000
        await settle()
        assert (room.places.count, room.places.parked) == (0, 0)
    assert store.is_at_rest


@virtually
async def test_who_may_not_wait_is_refused_at_once() -> None:
    store = MemoryStore()
    store.room("w", 4)
    async with WaitingRoom(store).open() as room:
        with pytest.raises(LimitReached) as refused:
            await ParkingTenant(room, 0).ask("a", max_queued=0)
        assert refused.value.type == "sequences"
        await settle()
        assert store.clock.monotonic_us() == 0
        assert store.is_at_rest
        assert [call[1] for call in store.calls] == ["enter", "leave"]


@pytest.mark.parametrize("error", [InvalidRequest("never"), QuotaExceeded("no money")])
def test_what_no_wait_mends_is_refused_at_once(error: Exception) -> None:
    class Never(Slots):
        async def admit(self) -> str:
            raise error

    @virtually
    async def test() -> None:
        store = MemoryStore()
        store.room("w", 4)
        async with WaitingRoom(store).open() as room:
            with pytest.raises(type(error)):
                await room.places.admit(asked("a"), Never(1))
            await settle()
            assert store.clock.monotonic_us() == 0
            assert store.is_at_rest

    test()


@virtually
async def test_each_settlement_admits_the_earliest_parked_and_no_more_than_the_limit() -> None:
    store = MemoryStore()
    store.room("w", 50)
    async with WaitingRoom(store).open() as room:
        tenant = ParkingTenant(room, 2)
        admitted: list[str] = []

        async def serve(request_id: str, wait_ms: int) -> None:
            place = await tenant.ask(request_id, wait_ms=wait_ms)
            admitted.append(request_id)
            await asyncio.sleep(1)
            await tenant.settle(place)

        requests = [("a", 90_000), ("b", 90_000), ("late", 80_000), ("soon", 20_000)]
        requests += [(f"r{i}", 60_000 + i) for i in range(20)]
        await asyncio.gather(*(room.start(serve(*request)) for request in requests))
        assert admitted[:4] == ["a", "b", "soon", "r0"]
        assert admitted[-1] == "late"
        assert tenant.slots.most == 2
        # Two at a time, a second each: nobody waited for a look or a renewal.
        assert store.clock.monotonic_us() < 12_700_000
    assert store.is_at_rest


@virtually
async def test_no_more_are_parked_than_may_wait() -> None:
    store = MemoryStore()
    store.room("w", 50)
    async with WaitingRoom(store).open() as room:
        tenant = ParkingTenant(room, 0, max_queued=3)
        waits = [room.start(tenant.ask(f"r{i}")) for i in range(8)]
        await asyncio.sleep(0.1)
        refused = [task.exception() for task in waits if task.done()]
        assert len(refused) == 5
        assert all(isinstance(each, LimitReached) and each.type == "queue" for each in refused)
        for task in waits:
            task.cancel()
        await settle()
    assert store.is_at_rest


@virtually
async def test_who_comes_later_does_not_overtake_who_is_parked() -> None:
    """A slot is free at the very moment when it comes."""
    store = MemoryStore()
    store.room("w", 50)
    async with WaitingRoom(store).open() as room:
        tenant = ParkingTenant(room, 1)
        first = await tenant.ask("a")
        parked = room.start(tenant.ask("b"))
        await asyncio.sleep(0.7)
        tenant.slots.used = 0
        late = room.start(tenant.ask("c"))
        place = await parked
        assert store.clock.monotonic_us() == 700_000
        assert not late.done()
        await tenant.settle(place)
        await (await late).end(150)
        await first.end(150)
    assert store.is_at_rest


@pytest.mark.parametrize("changes", [{"need_tokens": 99}, {"key": "k2"}, {"wait_ms": 100}])
def test_one_that_may_have_room_where_the_parked_one_has_none_goes_on(
    changes: dict[str, int | str],
) -> None:
    """A smaller one, one of another key; or one that is due earlier."""

    @virtually
    async def test() -> None:
        store = MemoryStore()
        store.room("w", 50)
        async with WaitingRoom(store, look_again_ms=5_000).open() as room:
            tenant = ParkingTenant(room, 0)
            parked = room.start(tenant.ask("a"))
            await asyncio.sleep(1)
            tenant.slots.limit = 1
            place = await tenant.ask("b", **changes)
            assert store.clock.monotonic_us() == 1_000_000
            await place.end(150)
            parked.cancel()
            await settle()
        assert store.is_at_rest

    test()
