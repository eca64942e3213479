"""The Lua scripts of a pool's queue execute the Python specification: the same steps, the same
answers and messages."""

import pytest
import redis.asyncio
from queue_parity import run_parity
from queue_specified import OneServersEar

from gateway.adapters.redis import connect_redis


@pytest.mark.timeout(300)
def test_lua_executes_the_specification_of_the_queue(redis_url: str) -> None:
    """Any sequence of steps of two gateways, clock jumps, losses and script flushes."""

    async def flush_scripts() -> None:
        async with redis.asyncio.Redis.from_url(redis_url) as plain:
            await plain.script_flush()

    run_parity(
        redis_url,
        lambda: connect_redis(redis_url, timeout_ms=5_000),
        lambda gateways: OneServersEar.at(redis_url, gateways),
        flush_scripts,
        examples=150,
    )
