"""Who reads single requests, and on which connections."""

import asyncio
from pathlib import Path

import pytest
from sqlalchemy import text

from billing.postgres.request_list import RequestFilter
from gateway.adapters import request_story as request_story_module
from gateway.adapters.postgres import async_engine
from gateway.adapters.request_story import RequestStories
from gateway.app import Gateway
from gateway.errors import StoreUnavailable
from gateway.settings import Settings
from gateway.watching import request_stories


async def test_b12_requests_are_read_where_none_is_served(
    database_url: str, redis_url: str, tmp_path: Path
) -> None:
    """B12: with every connection taken that serving and administration have, a page is answered."""
    gateway = Gateway(
        Settings(database_url=database_url, redis_url=redis_url, journal_dir=tmp_path)
    )
    serving = (gateway.postgres, gateway.shipping_postgres, gateway.spend_postgres)
    taken = [
        await engine.connect()
        for engine in serving
        for _ in range(engine.pool.size())  # type: ignore[attr-defined]  # a QueuePool
    ]
    page = await request_stories(gateway).page(RequestFilter(), limit=10)
    assert page.records == ()
    for connection in taken:
        await connection.close()
    for engine in (*serving, gateway.usage_postgres):
        await engine.dispose()
    await gateway.redis.aclose()


async def test_who_finds_no_turn_is_told_so(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two at once; a third waits a while, and once one is done it is served."""
    engine = async_engine(database_url, pool_size=5)
    stories = RequestStories(engine, None, None)
    monkeypatch.setattr(request_story_module, "WAIT_S", 0.05)
    done = asyncio.Event()

    async def slow() -> None:
        async with stories._reading() as db:
            await db.execute(text("SELECT 1"))
            await done.wait()

    slow_ones = [asyncio.create_task(slow()) for _ in range(RequestStories.POOL_SIZE)]
    async with asyncio.timeout(5):
        while not stories._turns.locked():  # noqa: ASYNC110 - until both have their turn
            await asyncio.sleep(0)
    with pytest.raises(StoreUnavailable):
        await stories.page(RequestFilter(), limit=1)
    done.set()
    await asyncio.gather(*slow_ones)
    assert (await stories.page(RequestFilter(), limit=1)).next_cursor is None
    await engine.dispose()


async def test_a_statement_that_takes_too_long_is_ended(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And gives its turn back."""
    engine = async_engine(database_url, pool_size=2)
    stories = RequestStories(engine, None, None)
    monkeypatch.setattr(request_story_module, "STATEMENT_TIMEOUT_MS", 20)
    for _ in range(RequestStories.POOL_SIZE + 1):
        with pytest.raises(StoreUnavailable):
            async with stories._reading() as db:
                await db.execute(text("SELECT pg_sleep(5)"))
    await engine.dispose()
