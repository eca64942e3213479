"""News of prices in Redis, so that a gateway that Postgres does not answer knows that its own are
not the newest. The prices themselves are in Postgres alone.

One sorted set; a member is the number of the price's change, scored by the Unix milliseconds from
which on who lacks it rates wrongly.
"""

import asyncio
import logging

from redis.exceptions import RedisError

from gateway.adapters.redis import RedisClient
from gateway.adapters.revocations import KEPT_MS, PUBLISH_TIMEOUT_S, READ_TIMEOUT_S
from gateway.domain.price_news import WrittenPrice

PRICES_KEY = "weir:prices"

logger = logging.getLogger(__name__)


async def publish_price(redis: RedisClient, price: WrittenPrice, *, now_ms: int) -> bool:
    """Tell every gateway, within 0.25 s. False where Redis did not take it: Postgres has it."""
    try:
        async with asyncio.timeout(PUBLISH_TIMEOUT_S):
            await redis.zadd(PRICES_KEY, {str(price.changed): price.begins_ms})
            await redis.zremrangebyscore(PRICES_KEY, "-inf", now_ms - KEPT_MS)
    except (RedisError, OSError, TimeoutError) as error:
        logger.warning("news of a price not published to Redis: %s", type(error).__name__)
        return False
    return True


async def read_price_news(redis: RedisClient, *, since_ms: int) -> list[WrittenPrice]:
    """Prices that begin `since_ms` or later, those of the future too. Raises what the driver
    raises, TimeoutError after 0.4 s."""
    async with asyncio.timeout(READ_TIMEOUT_S):
        reply = await redis.zrangebyscore(PRICES_KEY, since_ms, "+inf", withscores=True)
    return [WrittenPrice(int(member), int(score)) for member, score in reply if member.isdigit()]
