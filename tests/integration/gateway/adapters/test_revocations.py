"""Revocations reach gateways through Redis, and never outlive what Postgres says later."""

import hashlib
import time
from collections.abc import AsyncIterator

import pytest
from postgres_proxy import PostgresProxy, postgres_proxy
from servers import eventually
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.adapters.directory import CachedDirectory
from gateway.adapters.postgres import async_engine
from gateway.adapters.redis import RedisClient, connect_redis
from gateway.adapters.revocations import REVOKED_KEPT_MS, REVOKED_KEY
from gateway.administration import Administration
from gateway.domain.tenant import Limits, Model

ME = "cli:test"


@pytest.fixture
async def engine(database_url: str) -> AsyncIterator[AsyncEngine]:
    """An engine on this test's database."""
    made = async_engine(database_url, pool_size=12)
    yield made
    await made.dispose()


@pytest.fixture
async def administration(engine: AsyncEngine) -> Administration:
    """What changes the directory, with the model `m` and the tenant `acme`."""
    made = Administration(engine)
    await made.register_model(ME, Model(id="m", context_tokens=2048, max_output_tokens=512))
    await made.create_tenant(ME, "acme", "Acme", Limits(tpm=5))
    return made


@pytest.fixture
async def proxy(database_url: str) -> AsyncIterator[PostgresProxy]:
    """A proxy in front of this test's database."""
    async with postgres_proxy(database_url) as started:
        yield started


@pytest.fixture
async def redis(redis_url: str) -> AsyncIterator[RedisClient]:
    """A client of this test's Redis."""
    made = connect_redis(redis_url, timeout_ms=2000)
    yield made
    await made.aclose()


async def test_revocations_come_through_redis_while_postgres_is_away(
    engine: AsyncEngine, administration: Administration, proxy: PostgresProxy, redis: RedisClient
) -> None:
    """A gateway that cannot reach Postgres refuses a revoked key and a suspended tenant within a
    second all the same."""
    publishing = Administration(engine, redis=redis)
    key, secret = await administration.create_key(ME, "acme", "k", "batch")
    digest = hashlib.sha256(secret.encode()).digest()
    behind = async_engine(proxy.url)
    directory = CachedDirectory(behind, redis=redis)
    await directory.start()
    await proxy.refuse()
    await publishing.revoke_key(ME, key.id)
    await publishing.update_tenant(ME, "acme", suspended=True)

    def refused() -> bool:
        found, tenant = directory.key_by_digest(digest), directory.tenant("acme")
        assert found is not None
        assert tenant is not None
        return found.revoked_at_ms is not None and tenant.suspended

    await eventually(refused, within_s=1)
    assert directory.revocations_age_ms < 1000
    await proxy.start()
    await directory.stop()
    await behind.dispose()


async def test_a_resumed_tenant_is_not_held_by_its_old_suspension(
    engine: AsyncEngine, administration: Administration, redis: RedisClient
) -> None:
    """The entry in Redis is older than the row, so the row counts; a gateway that starts now
    sees it so too."""
    publishing = Administration(engine, redis=redis)
    await publishing.update_tenant(ME, "acme", suspended=True)
    directory = CachedDirectory(engine, redis=redis, revocation_poll_ms=10)
    await directory.start()
    tenant = directory.tenant("acme")
    assert tenant is not None
    assert tenant.suspended
    resumed = await publishing.update_tenant(ME, "acme", suspended=False)
    await eventually(lambda: directory.tenant("acme") == resumed, within_s=1)
    looked_at = directory._revocations_looked_at
    await eventually(lambda: directory._revocations_looked_at > looked_at)
    assert directory.tenant("acme") == resumed
    await directory.stop()


async def test_revocations_are_kept_for_as_long_as_a_backup_may_be_old(
    engine: AsyncEngine, redis: RedisClient
) -> None:
    """Older ones are trimmed by the next, and foreign entries are passed over."""
    now_ms = time.time_ns() // 1_000_000
    old_ms = now_ms - REVOKED_KEPT_MS - 1000
    await redis.zadd(REVOKED_KEY, {"key:old:1": old_ms, "nonsense": now_ms})
    administration = Administration(engine, redis=redis)
    await administration.create_tenant(ME, "acme", "T")
    await administration.update_tenant(ME, "acme", suspended=True)
    members = await redis.zrange(REVOKED_KEY, 0, -1)
    assert b"key:old:1" not in members
    assert len(members) == 2
    directory = CachedDirectory(engine, redis=redis)
    await directory.start()
    tenant = directory.tenant("acme")
    assert tenant is not None
    assert tenant.suspended
    await directory.stop()


async def test_a_tenant_that_is_resumed_leaves_no_suspension_behind(
    engine: AsyncEngine, redis: RedisClient
) -> None:
    """A backup from before both would be taken to lack the suspension; others' entries stay."""
    administration = Administration(engine, redis=redis)
    for tenant in ("acme", "acme2"):
        await administration.create_tenant(ME, tenant, "T")
        await administration.update_tenant(ME, tenant, suspended=True)
    await administration.update_tenant(ME, "acme", suspended=False)
    (left,) = await redis.zrange(REVOKED_KEY, 0, -1)
    assert left.startswith(b"tenant:acme2:")
