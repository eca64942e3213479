"""Who has a place and whose tenant has no room waits for that, and for nobody else."""

import asyncio

import pytest
from memory_pool_queue import MemoryStore
from virtual_time import virtually
from waiting_rooms import Slots, WaitingRoom, asked, settle

from gateway.errors import InvalidRequest, LimitReached, QuotaExceeded
from gateway.serving.queue.held import HeldPlace


class Tenant:
    """A tenant with a limit, and what its requests do."""

    def __init__(self, room: WaitingRoom, limit: int, **asks: int | str) -> None:
        self.room = room
        self.slots = Slots(limit)
        self.asks = asks

    async def ask(self, request_id: str, **changes: int | str) -> HeldPlace:
        asks = {**self.asks, **changes}
        place, lease = await self.room.places.admit(asked(request_id, **asks), self.slots)
        assert lease == "a lease"
        return place

    async def settle(self, place: HeldPlace) -> None:
        """As the straight line: the lease first, then the place."""
        self.slots.used -= 1
        self.room.places.settled("acme")
        await place.end(150)


@virtually
async def test_it_is_parked_until_something_of_its_tenant_is_settled() -> None:
    store = MemoryStore()
    store.room("w", 4)
    async with WaitingRoom(store).open() as room:
        tenant = Tenant(room, 1)
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
        parked = room.start(Tenant(room, 0).ask("a"))
        await asyncio.sleep(0.1)
        place = await Tenant(room, 1, tenant="globex").ask("b")
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
        tenant = Tenant(room, 0)
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
            await Tenant(room, 0).ask("a", max_queued=0)
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
async def test_limits_that_free_up_elsewhere_are_seen_by_a_paced_look() -> None:
    """Another gateway settled, and this one hears nothing of it."""
    store = MemoryStore()
    store.room("w", 4)
    async with WaitingRoom(store, look_again_ms=500).open() as room:
        tenant = Tenant(room, 0)
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
        tenants = [Tenant(room, 0, tenant=f"t{i}") for i in range(100)]
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
async def test_each_settlement_admits_the_earliest_parked_and_no_more_than_the_limit() -> None:
    store = MemoryStore()
    store.room("w", 50)
    async with WaitingRoom(store).open() as room:
        tenant = Tenant(room, 2)
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
async def test_a_limit_that_rises_admits_one_after_another() -> None:
    """After the first, the next need no look of their own time."""
    store = MemoryStore()
    store.room("w", 50)
    async with WaitingRoom(store, look_again_ms=5_000).open() as room:
        tenant = Tenant(room, 0)
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


@virtually
async def test_no_more_are_parked_than_may_wait() -> None:
    store = MemoryStore()
    store.room("w", 50)
    async with WaitingRoom(store).open() as room:
        tenant = Tenant(room, 0, max_queued=3)
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
        tenant = Tenant(room, 1)
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
            tenant = Tenant(room, 0)
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
