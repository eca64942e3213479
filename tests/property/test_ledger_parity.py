"""The Lua scripts execute the Python specification: the same operations, the same replies."""

import pytest
import redis.asyncio
from ledger_parity import run_parity

from gateway.adapters.redis import RedisClient, connect_redis


@pytest.mark.timeout(300)
def test_lua_executes_the_specification(redis_url: str) -> None:
    """Any sequence of operations, clock jumps, losses and script flushes: the same replies and the
    same state from both."""

    async def flush_scripts(_: RedisClient) -> None:
        async with redis.asyncio.Redis.from_url(redis_url) as plain:
            await plain.script_flush()

    run_parity(lambda: connect_redis(redis_url, timeout_ms=5000), flush_scripts, examples=120)
