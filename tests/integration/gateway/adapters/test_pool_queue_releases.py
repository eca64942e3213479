"""A pool's record that a gateway of the release before has written."""

from collections.abc import AsyncIterator

import pytest
import redis.asyncio

from gateway.adapters.pool_queue import RedisPoolQueue
from gateway.adapters.pool_queue_scripts import keys_of
from gateway.adapters.redis import connect_redis
from gateway.domain.queue.capacity import WorkerRoom
from gateway.domain.queue.tickets import Band, Granted
from gateway.serving.queue_ports import Wish

POOL = "org/model-of-two-releases"
RECORD = "\xff".encode("latin-1")
LATER_BYTES = 80
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
    assert again[-LATER_BYTES:] == bytes(LATER_BYTES)
