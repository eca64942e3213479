"""News of prices reach a gateway that Postgres does not answer, through Redis."""

import time
from collections.abc import AsyncIterator, Callable

import pytest
from postgres_proxy import PostgresProxy, postgres_proxy
from servers import eventually
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.adapters.directory import CachedDirectory
from gateway.adapters.postgres import async_engine
from gateway.adapters.price_news import PRICES_KEY
from gateway.adapters.redis import RedisClient, connect_redis
from gateway.adapters.revocations import KEPT_MS
from gateway.administration import Administration, NewPrice
from gateway.domain.price_news import LEAD_MS
from gateway.domain.tenant import Model

ME = "cli:test"


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def a_price(output_pico: int) -> NewPrice:
    return NewPrice(
        model="m", currency="USD", input_pico=1, cached_input_pico=None, output_pico=output_pico
    )


@pytest.fixture
async def engine(database_url: str) -> AsyncIterator[AsyncEngine]:
    """An engine on this test's database."""
    made = async_engine(database_url, pool_size=12)
    yield made
    await made.dispose()


@pytest.fixture
async def redis(redis_url: str) -> AsyncIterator[RedisClient]:
    """A client of this test's Redis."""
    made = connect_redis(redis_url, timeout_ms=2000)
    yield made
    await made.aclose()


@pytest.fixture
async def administration(engine: AsyncEngine, redis: RedisClient) -> Administration:
    """What sets prices; the model `m` has one."""
    made = Administration(engine, redis=redis)
    await made.register_model(ME, Model(id="m", context_tokens=2048, max_output_tokens=512))
    await made.set_price(ME, a_price(1))
    return made


@pytest.fixture
async def proxy(database_url: str) -> AsyncIterator[PostgresProxy]:
    """A proxy in front of this test's database."""
    async with postgres_proxy(database_url) as started:
        yield started


Behind = Callable[[RedisClient | None], CachedDirectory]


@pytest.fixture
async def behind(proxy: PostgresProxy) -> AsyncIterator[Behind]:
    """Makes directories of gateways behind the proxy."""
    made = async_engine(proxy.url)
    yield lambda redis: CachedDirectory(made, redis=redis, poll_ms=50, revocation_poll_ms=50)
    await made.dispose()


async def test_a_gateway_behind_knows_that_its_prices_are_old(
    administration: Administration, proxy: PostgresProxy, redis: RedisClient, behind: Behind
) -> None:
    """From the instant at which the new one begins, not before; until Postgres answers again."""
    directory = behind(redis)
    await directory.start()
    await proxy.refuse()
    added = await administration.set_price(ME, a_price(7000))
    begins_ms = added.effective_from_ms
    knows = directory.knows_prices_at
    # A look at Redis while the price was being written heard nothing; the next one does.
    await eventually(lambda: knows(begins_ms - 1) and not knows(begins_ms), within_s=3)
    await proxy.start()
    await eventually(lambda: directory.knows_prices_at(begins_ms), within_s=3)
    assert directory.price_book().price_at("m", "self", "USD", begins_ms) == added
    await directory.stop()


async def test_postgres_away_for_all_takes_no_price_away(
    administration: Administration, proxy: PostgresProxy, redis: RedisClient, behind: Behind
) -> None:
    """Nobody can write one then: as long as Redis is seen and says nothing, the book is trusted.
    Where Redis is not seen either, for as long as a new price takes to begin."""
    seeing, blind = behind(redis), behind(None)
    for directory in (seeing, blind):
        await directory.start()
        assert directory.knows_prices_at(now_ms())
    await proxy.refuse()
    await eventually(lambda: not blind.knows_prices_at(now_ms()), within_s=3 * LEAD_MS / 1000)
    assert blind.age_ms >= LEAD_MS
    assert seeing.age_ms >= LEAD_MS - 1000
    assert seeing.knows_prices_at(now_ms())
    await proxy.start()
    await eventually(lambda: blind.knows_prices_at(now_ms()), within_s=3)
    for directory in (seeing, blind):
        await directory.stop()


async def test_repeating_a_price_tells_of_it_again(
    administration: Administration, engine: AsyncEngine, redis: RedisClient
) -> None:
    """One that Redis did not take; old news are trimmed, foreign entries passed over."""
    alone = Administration(engine)
    added = await alone.set_price(ME, a_price(7000))
    await redis.delete(PRICES_KEY)
    await redis.zadd(PRICES_KEY, {"1": now_ms() - KEPT_MS - 1000, "nonsense": now_ms()})
    again = await administration.set_price(
        ME, a_price(7000), effective_from_ms=added.effective_from_ms
    )
    assert again == added
    found = await redis.zrange(PRICES_KEY, 0, -1, withscores=True)
    assert [score for member, score in found if member.isdigit()] == [added.effective_from_ms]
    directory = CachedDirectory(engine, redis=redis)
    await directory.start()
    assert directory.knows_prices_at(now_ms())
    await directory.stop()


async def test_a_first_price_makes_nobody_wait(
    administration: Administration, redis: RedisClient
) -> None:
    """Who lacks it does not rate wrongly, only not yet: the news is of when any gateway has it."""
    await redis.delete(PRICES_KEY)
    await administration.register_model(
        ME, Model(id="n", context_tokens=2048, max_output_tokens=512)
    )
    first = await administration.set_price(
        ME, NewPrice(model="n", currency="USD", input_pico=1, cached_input_pico=None, output_pico=1)
    )
    ((_, score),) = await redis.zrange(PRICES_KEY, 0, -1, withscores=True)
    assert score == first.effective_from_ms + LEAD_MS
