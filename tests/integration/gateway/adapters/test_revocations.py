"""Revocations reach gateways through Redis, and never outlive what Postgres says later."""

import hashlib
import time
from collections.abc import AsyncIterator

import pytest
from postgres_proxy import PostgresProxy, postgres_proxy
from servers import eventually
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.adapters.directory import CachedDirectory
from gateway.adapters.postgres import async_engine
from gateway.adapters.redis import RedisClient, connect_redis
from gateway.adapters.revocations import REVOKED_KEPT_MS, REVOKED_KEY
from gateway.adapters.withdrawal_past import load_withdrawn, lost_withdrawals
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


async def restored(engine: AsyncEngine) -> None:
    """As a backup from before everything was withdrawn; the directory's numbers go back too."""
    async with engine.begin() as db:
        await db.execute(text("SET LOCAL session_replication_role = replica"))
        await db.execute(text("UPDATE tenant SET suspended_at = NULL, changed = 1"))
        await db.execute(text("UPDATE api_key SET revoked_at = NULL, changed = 1"))


async def test_what_is_changed_after_a_restore_is_withdrawn_still(
    engine: AsyncEngine, administration: Administration, redis: RedisClient
) -> None:
    """Other limits give neither a suspended tenant nor a revoked key back, in a gateway that starts
    then, and what Postgres lacks is told. Resumed, the tenant is served where Redis keeps the entry
    too; the key is revoked for good."""
    publishing = Administration(engine, redis=redis)
    key, secret = await administration.create_key(ME, "acme", "k", "batch")
    digest = hashlib.sha256(secret.encode()).digest()
    await publishing.revoke_key(ME, key.id)
    await publishing.update_tenant(ME, "acme", suspended=True)
    entries = await redis.zrange(REVOKED_KEY, 0, -1, withscores=True)
    await restored(engine)
    await publishing.put_tenant_limits(ME, "acme", Limits(rpm=100))
    await publishing.put_key_limits(ME, key.id, Limits(rpm=100))

    async def served() -> tuple[bool, bool, list[str]]:
        directory = CachedDirectory(engine, redis=redis)
        await directory.start()
        found, tenant = directory.key_by_digest(digest), directory.tenant("acme")
        unwritten = directory.unwritten_revocations() or []
        await directory.stop()
        assert found is not None
        assert tenant is not None
        kinds = sorted(each.kind for each in unwritten)
        async with engine.connect() as db:
            lost = await lost_withdrawals(db, await load_withdrawn(redis))
        assert sorted(each.kind for each in lost) == kinds
        return not tenant.suspended, found.revoked_at_ms is None, kinds

    assert await served() == (False, False, ["key", "tenant"])
    await publishing.update_tenant(ME, "acme", suspended=False)
    assert await served() == (True, False, ["key"])
    await redis.zadd(REVOKED_KEY, dict(entries))
    assert await served() == (True, False, ["key"])
    await publishing.revoke_key("weir:restore", key.id)
    assert await served() == (True, False, [])


async def test_a_tenant_that_was_resumed_before_a_change_stays_so(
    engine: AsyncEngine, administration: Administration, redis: RedisClient
) -> None:
    """Where Redis could not forget the suspension the row knows of it: no other change undoes
    that, and a suspension that follows counts."""
    publishing = Administration(engine, redis=redis)
    await publishing.update_tenant(ME, "acme", suspended=True)
    await administration.update_tenant(ME, "acme", suspended=False)
    await administration.put_tenant_limits(ME, "acme", Limits(rpm=100))
    directory = CachedDirectory(engine, redis=redis, revocation_poll_ms=10)
    await directory.start()
    tenant = directory.tenant("acme")
    assert tenant is not None
    assert not tenant.suspended
    assert directory.unwritten_revocations() == []
    await publishing.update_tenant(ME, "acme", suspended=True)

    def suspended() -> bool:
        found = directory.tenant("acme")
        return found is not None and found.suspended

    await eventually(suspended, within_s=1)
    await directory.stop()


async def test_a_key_that_was_rotated_with_a_grace_and_revoked_stays_revoked(
    engine: AsyncEngine, administration: Administration, redis: RedisClient
) -> None:
    """Its grace is in the backup, its revocation is not. One that ended as it was rotated needs
    none."""
    publishing = Administration(engine, redis=redis)
    graced, _ = await administration.create_key(ME, "acme", "k", "batch")
    ended, _ = await administration.create_key(ME, "acme", "k", "batch")
    await publishing.rotate_key(ME, graced.id, grace_ms=3_600_000)
    await publishing.rotate_key(ME, ended.id, grace_ms=0)
    await publishing.revoke_key(ME, graced.id)
    await restored(engine)
    await publishing.put_key_limits(ME, graced.id, Limits(rpm=100))
    directory = CachedDirectory(engine, redis=redis)
    await directory.start()
    unwritten = directory.unwritten_revocations() or []
    await directory.stop()
    assert [each.subject_id for each in unwritten] == [graced.id]
