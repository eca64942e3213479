"""Requests that are parked at two gateways on one real server: who is let go on, and who hears of
what ended elsewhere. Nobody looks at limits unasked within a test's time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest
import redis.asyncio
from queue_specified import forget_pool
from waiting_rooms import ParkingTenant, Slots

from gateway.adapters.pool_queue import RedisPoolQueue
from gateway.adapters.pool_queue_scripts import KEYS, keys_of
from gateway.adapters.redis import connect_redis
from gateway.clock import SystemClock
from gateway.domain.queue.capacity import WorkerRoom
from gateway.domain.queue.tickets import Band, Granted, Parked, Unknown
from gateway.serving.queue.asked import QueueSettings
from gateway.serving.queue.places import Places
from gateway.serving.queue_ports import Wish
from gateway.serving.store_watch import StoreWatch

POOL = "m"
IN_TIME_S = 10
NOBODY = b"\xff"


class NoFleet:
    """The store was told of its worker, and stays so."""

    def has_any(self, pool: str) -> bool:
        return True

    def sees(self, pool: str, worker: str) -> bool:
        return True

    async def tell_again(self, pool: str) -> None:
        return None


class Gateway:
    """A waiting room on a real server."""

    def __init__(self, url: str, name: str) -> None:
        self.client = connect_redis(url, timeout_ms=2_000)
        self.queue = RedisPoolQueue(
            self.client, url=url, gateway=name, ttl_ms=60_000, timeout_ms=2_000
        )
        watch = StoreWatch(self._ping, timeout_ms=2_000, on_return=_nothing)
        settings = QueueSettings(look_again_ms=600_000)
        self.places = Places(self.queue, watch, SystemClock(), NoFleet(), settings)
        self._tasks = [asyncio.create_task(work) for work in (self.places.run(), watch.run())]

    async def _ping(self) -> None:
        await self.client.ping()

    async def aclose(self) -> None:
        """Stop all that it does."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.places.until_told()
        await self.queue.aclose()
        await self.client.aclose()


async def _nothing() -> None:
    return None


@pytest.fixture
async def gateways(redis_url: str) -> AsyncIterator[list[Gateway]]:
    """Two, which hear what they are told, and a worker with room for all."""
    async with AsyncExitStack() as stack:
        made = [Gateway(redis_url, f"parked-{number}") for number in (1, 2)]
        for each in made:
            stack.push_async_callback(each.aclose)
        await forget_pool(made[0].client, POOL)
        await made[0].queue.report(POOL, [WorkerRoom("w", 99, 99, 10**6, 0)], well_ms=3_600_000)
        async with asyncio.timeout(IN_TIME_S):
            for each in made:
                await each.queue.listening()
        yield made
        await forget_pool(made[0].client, POOL)


async def _left(url: str, key: str) -> list[bytes]:
    plain: Any
    async with redis.asyncio.Redis.from_url(url) as plain:
        members: list[bytes] = await plain.zrange(key, 0, -1)
        return members


async def parked(gateway: Gateway, count: int) -> None:
    """Once so many are, and the store has answered that they are."""
    async with asyncio.timeout(IN_TIME_S):
        while (await gateway.queue.observe(POOL)).parked < count:  # noqa: ASYNC110 - the store's
            await asyncio.sleep(0.005)


async def test_what_ends_at_one_gateway_is_heard_at_the_other(gateways: list[Gateway]) -> None:
    """By a request of another key, which waits for their tenant's limit."""
    there, here = gateways
    slots = Slots(1)
    one, two = ParkingTenant(there, slots), ParkingTenant(here, slots, wait_ms=60_000)
    running = await one.ask("a", key="k1")
    waits = asyncio.create_task(two.ask("b", key="k2"))
    await parked(here, 1)
    await one.settle(running)
    async with asyncio.timeout(IN_TIME_S):
        place = await waits
    await two.settle(place)
    assert slots.most == 1


async def test_a_key_that_is_full_at_one_gateway_holds_up_no_other_key_at_the_other(
    gateways: list[Gateway],
) -> None:
    """Its request is the tenant's earliest, and is not asked of its limits again."""
    there, here = gateways
    full = ParkingTenant(there, Slots(0, of_key=True), key="k1", wait_ms=30_000)
    free = ParkingTenant(here, Slots(1, of_key=True), key="k2", wait_ms=60_000)
    held_up = asyncio.create_task(full.ask("a"))
    running = await free.ask("b1")
    waits = asyncio.create_task(free.ask("b2"))
    await parked(here, 2)
    await free.settle(running)
    async with asyncio.timeout(IN_TIME_S):
        place = await waits
    assert full.slots.asks == 1
    await free.settle(place)
    held_up.cancel()
    await asyncio.wait([held_up])


async def test_of_one_key_at_two_gateways_the_earliest_goes_first(gateways: list[Gateway]) -> None:
    """All of one lot, one at a time, whichever gateway looks."""
    slots, served = Slots(1, of_key=True), list[int]()
    tenants = [ParkingTenant(gateway, slots) for gateway in gateways]
    running = await tenants[0].ask("a")

    async def serve(number: int) -> None:
        tenant = tenants[number % 2]
        place = await tenant.ask(f"r{number}", wait_ms=60_000 + number * 5_000)
        served.append(number)
        await tenant.settle(place)

    tasks = [asyncio.create_task(serve(number)) for number in (5, 2, 4, 1, 3, 0)]
    await parked(gateways[0], 6)
    await tenants[0].settle(running)
    async with asyncio.timeout(IN_TIME_S):
        await asyncio.gather(*tasks)
    assert served == list(range(6))
    assert slots.most == 1


async def test_what_a_gateway_of_the_release_before_leaves_behind_is_passed_over(
    gateways: list[Gateway], redis_url: str
) -> None:
    """It knows no lots: it has let the first go, and its own tickets are read as of none."""
    queue = gateways[0].queue
    wishes = [
        Wish(name, "t", Band.INTERACTIVE, 1, 1, 1, 1, 60_000 + at, 1, lot="k")
        for at, name in enumerate(("first", "second", "old"))
    ]
    for wish in wishes:
        assert await queue.enter(POOL, wish, max_queued=9) == Granted("w")
        assert await queue.park(POOL, wish.id, max_queued=9) == Parked()
    tickets, lots = (keys_of(POOL)[KEYS.index(name)] for name in ("tickets", "lots"))
    plain: Any
    async with redis.asyncio.Redis.from_url(redis_url) as plain:
        of_lots = {each.split(b"\0")[-1][17:]: each for each in await plain.zrange(lots, 0, -1)}
        await queue.leave(POOL, "first", actual_cost=None)
        await plain.zadd(lots, {of_lots[b"first"]: 0})
        await plain.zrem(lots, of_lots[b"old"])
        record = await plain.hget(tickets, "old")
        assert b"\x01k\0" in record
        await plain.hset(tickets, "old", record.replace(b"\x01k\0", b"\0"))
    await queue.unpark(POOL, "t", "k")
    assert await queue.renew(POOL, ["first", "second", "old"]) == [
        Unknown(), Granted("w"), Parked(),
    ]  # fmt: skip
    assert await queue.take_up(POOL, "second") == Granted("w")
    await queue.leave(POOL, "old", actual_cost=None)
    await queue.leave(POOL, "second", actual_cost=1)
    use = await queue.observe(POOL)
    assert (use.parked, use.tenants_waiting) == (0, {})
    assert await _left(redis_url, lots) == [NOBODY]
