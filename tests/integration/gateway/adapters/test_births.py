"""Since when a single server remembers; a cluster's marks are in `tests/fleet/redis_cluster`."""

import time
from collections.abc import AsyncIterator

import pytest
from servers import flush

from billing.postgres.journal_watermarks import Watermark, advance_watermark
from gateway.adapters.births import Births, history_in
from gateway.adapters.postgres import async_engine
from gateway.adapters.redis import RedisClient, connect_redis
from gateway.serving.ports import LedgerUnavailable


@pytest.fixture
async def redis(redis_url: str) -> AsyncIterator[RedisClient]:
    """A client of this test's Redis."""
    made = connect_redis(redis_url, timeout_ms=1000)
    yield made
    await made.aclose()


async def never() -> bool:
    return False


async def served() -> bool:
    return True


async def store_ms(redis: RedisClient) -> int:
    seconds, micros = await redis.time()
    return seconds * 1000 + micros // 1000


async def test_a_new_installation_never_lost_anything(redis: RedisClient) -> None:
    """Its first gateway says so, and the later ones believe it, also once there is usage."""
    await Births(redis, never).open()
    later = Births(redis, served)
    await later.open()
    assert await later.born_ms("acme") == 0
    assert await redis.get("weir:born") == b"0"


async def test_two_first_gateways_agree(redis: RedisClient) -> None:
    """Whoever is first, the mark is written once."""
    first, second = Births(redis, never), Births(redis, never)
    await first.open()
    await second.open()
    assert [await each.born_ms("acme") for each in (first, second)] == [0, 0]


async def test_an_empty_store_of_an_old_installation_was_lost(redis: RedisClient) -> None:
    """Without marks but with usage in Postgres: born now, by the store's clock, for everybody."""
    before_ms = await store_ms(redis)
    first = Births(redis, served)
    await first.open()
    born_ms = await first.born_ms("acme")
    assert before_ms <= born_ms <= await store_ms(redis)
    assert await Births(redis, served).born_ms("globex") == born_ms


async def test_a_loss_while_gateways_run_is_seen(redis: RedisClient, redis_url: str) -> None:
    """No gateway answers from memory: the next question finds the mark gone and dates the loss."""
    births = Births(redis, never)
    await births.open()
    assert await births.born_ms("acme") == 0
    before_ms = await store_ms(redis)
    flush(redis_url)
    born_ms = await births.born_ms("acme")
    assert born_ms >= before_ms
    assert await births.born_ms("acme") == born_ms


async def test_a_store_that_is_away_at_the_start_is_looked_at_later(free_port: int) -> None:
    """It does not answer, so nothing is said of it, in time."""
    redis = connect_redis(f"redis://127.0.0.1:{free_port}", timeout_ms=100)
    births = Births(redis, never)
    began = time.monotonic()
    with pytest.raises(LedgerUnavailable):
        await births.open()
    with pytest.raises(LedgerUnavailable):
        await births.born_ms("acme")
    assert time.monotonic() - began < 2 * 0.3
    await redis.aclose()


async def test_what_counts_as_history(database_url: str) -> None:
    """A journal that Postgres has heard of, before any usage."""
    engine = async_engine(database_url)
    has_history = history_in(engine)
    assert not await has_history()
    async with engine.begin() as db:
        await advance_watermark(db, "g", 1, before=Watermark(), after=Watermark(1, 1, 0, 0))
    assert await has_history()
    await engine.dispose()
