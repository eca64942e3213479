"""How many connections a gateway may have to Postgres."""

import asyncio
from pathlib import Path

from sqlalchemy import QueuePool, text

from gateway.adapters.postgres import async_engine
from gateway.app import Gateway
from gateway.settings import Settings

CONNECTIONS_MAX = 22
"""As docs/architecture.md says."""


async def test_m06_a_pool_is_a_bound(database_url: str) -> None:
    """Thirty at once over three connections: all are served, and there were never four."""
    engine = async_engine(database_url, pool_size=3)
    watching = async_engine(database_url, pooled=False)
    seen: list[int] = []

    async def work() -> None:
        async with engine.connect() as db:
            await db.execute(text("SELECT pg_sleep(0.02)"))

    async def watch() -> None:
        counted = text(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE query LIKE '%pg_sleep%' AND pid <> pg_backend_pid()"
        )
        async with watching.connect() as db:
            while True:
                seen.append(await db.scalar(counted) or 0)
                await db.rollback()

    watcher = asyncio.create_task(watch())
    await asyncio.gather(*(work() for _ in range(30)))
    watcher.cancel()
    await asyncio.gather(watcher, return_exceptions=True)
    assert 0 < max(seen) <= 3
    await engine.dispose()
    await watching.dispose()


async def test_m06_a_gateway_has_twenty_two_connections_at_most(
    database_url: str, redis_url: str, tmp_path: Path
) -> None:
    """Its pools together, and none of them overflows."""
    gateway = Gateway(
        Settings(database_url=database_url, redis_url=redis_url, journal_dir=tmp_path)
    )
    engines = (
        gateway.postgres,
        gateway.directory_postgres,
        gateway.shipping_postgres,
        gateway.spend_postgres,
        gateway.usage_postgres,
        gateway.reconciling_postgres,
        gateway.invoicing_postgres,
    )
    pools = [engine.pool for engine in engines]
    assert all(isinstance(pool, QueuePool) and pool._max_overflow == 0 for pool in pools)
    assert sum(pool.size() for pool in pools if isinstance(pool, QueuePool)) == CONNECTIONS_MAX
    for engine in engines:
        await engine.dispose()
    await gateway.redis.aclose()
