"""A pool's record that a gateway of the release before has written."""

from collections.abc import AsyncIterator
from struct import unpack

import pytest
import redis.asyncio

from gateway.adapters.pool_queue import RedisPoolQueue
from gateway.adapters.pool_queue_scripts import KEYS, STORED_MS, keys_of
from gateway.adapters.redis import connect_redis
from gateway.domain.queue.capacity import WorkerRoom
from gateway.domain.queue.fairness import UNITS
from gateway.domain.queue.tickets import Band, Granted, Queued
from gateway.serving.queue_ports import Wish

POOL, OTHER_POOL = "org/model-of-two-releases", "org/another"
RECORD = "\xff".encode("latin-1")
FULL = 2**53 - 1
LATER_BYTES, NEWCOMERS_BYTES = 96, 64
"""Behind the workers: of each band for how long no worker is kept, and where newcomers stand."""


@pytest.fixture
async def queue(redis_url: str) -> AsyncIterator[RedisPoolQueue]:
    """A gateway's, on the session's server."""
    client = connect_redis(redis_url, timeout_ms=2_000)
    yield RedisPoolQueue(client, url=redis_url, gateway="g", ttl_ms=5_000, timeout_ms=2_000)
    await client.aclose()


async def test_a_record_without_what_came_later_is_read_and_completed(
    queue: RedisPoolQueue, redis_url: str
) -> None:
    """What runs on each worker stays known."""
    rooms = [WorkerRoom(name, 2, 2, 2**53 - 1, 0) for name in ("w1", "w2")]
    await queue.report(POOL, rooms, well_ms=60_000)
    wish = Wish("1", "t", Band.INTERACTIVE, 2, 100, 50, 1, 60_000, 30_000)
    assert await queue.enter(POOL, wish, max_queued=9) == Granted("w1")
    async with redis.asyncio.Redis.from_url(redis_url) as plain:
        tickets = keys_of(POOL)[0]
        whole = await plain.hget(tickets, RECORD)
        assert isinstance(whole, bytes)
        await plain.hset(tickets, RECORD, whole[:-LATER_BYTES])
        use = await queue.observe(POOL)
        assert [(each.id, each.running, each.tokens) for each in use.rooms] == [
            ("w1", 2, 100), ("w2", 0, 0),
        ]  # fmt: skip
        again = await plain.hget(tickets, RECORD)
    assert isinstance(again, bytes)
    assert len(again) == len(whole)
    # What runs was charged, in each band: it is not known in which.
    expected = wish.cost * UNITS
    assert unpack("<12d", again[-LATER_BYTES:]) == (*[0] * 7, expected, *[0] * 3, expected)


def wish(name: str, tenant: str) -> Wish:
    """One that waits for a minute."""
    return Wish(name, tenant, Band.INTERACTIVE, 1, 100, 50, 1, 60_000, 30_000)


async def test_where_one_of_before_came_between_newcomers_wait_on_as_others_do(
    queue: RedisPoolQueue, redis_url: str
) -> None:
    """It drops what it knows nothing of, and may have granted any of them. They stand where they
    were lifted to, names decide, and who comes next is a newcomer again."""
    await queue.report(OTHER_POOL, [WorkerRoom("w", 1, 1, FULL, 0)], well_ms=60_000)
    assert await queue.enter(OTHER_POOL, wish("0", "m"), max_queued=9) == Granted("w")
    for name, tenant in (("1", "m"), ("2", "z"), ("3", "b")):
        assert isinstance(await queue.enter(OTHER_POOL, wish(name, tenant), max_queued=9), Queued)
    async with redis.asyncio.Redis.from_url(redis_url) as plain:
        tickets, new = keys_of(OTHER_POOL)[0], keys_of(OTHER_POOL)[KEYS.index("new:0")]
        assert await plain.zrange(new, 0, -1) == [b"z", b"b", RECORD]
        whole = await plain.hget(tickets, RECORD)
        assert isinstance(whole, bytes)
        await plain.hset(tickets, RECORD, whole[:-NEWCOMERS_BYTES])
        await plain.delete(new)
        await queue.tick(OTHER_POOL)
        assert await plain.zrange(new, 0, -1) == [RECORD]
        assert 0 < await plain.pttl(new) <= STORED_MS
    use = await queue.observe(OTHER_POOL)
    assert {bands[Band.INTERACTIVE].counter for bands in use.shares.values()} == {50_000}
    await queue.enter(OTHER_POOL, wish("4", "x"), max_queued=9)
    served = []
    for running in ("0", "4", "3", "1"):
        await queue.leave(OTHER_POOL, running, actual_cost=50)
        use = await queue.observe(OTHER_POOL)
        served.append([t for t, bands in use.shares.items() if bands[Band.INTERACTIVE].running])
    assert served == [["x"], ["b"], ["m"], ["z"]]
