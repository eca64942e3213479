"""What the verbs do when Postgres is away, silent, restarted or busy."""

import asyncio
import time
from collections.abc import AsyncIterator

import pytest
from postgres_proxy import PostgresProxy, postgres_proxy
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.adapters.postgres import async_engine
from gateway.adapters.redis import RedisClient, connect_redis
from gateway.adapters.revocations import read_revocations
from gateway.administration import Administration
from gateway.errors import Conflict, StoreUnavailable

ME = "cli:test"
WITHIN_S = 2.0


@pytest.fixture
async def proxy(database_url: str) -> AsyncIterator[PostgresProxy]:
    """A proxy in front of this test's database."""
    async with postgres_proxy(database_url) as started:
        yield started


@pytest.fixture
async def behind_proxy(proxy: PostgresProxy) -> AsyncIterator[Administration]:
    """An Administration that reaches its database through the proxy."""
    engine = async_engine(proxy.url)
    yield Administration(engine)
    await proxy.start()
    await engine.dispose()


async def refused_in_time(administration: Administration, tenant_id: str) -> StoreUnavailable:
    """Create a tenant, which must fail with StoreUnavailable within 2 s."""
    began = time.monotonic()
    with pytest.raises(StoreUnavailable) as refused:
        await administration.create_tenant(ME, tenant_id, "T")
    assert time.monotonic() - began < WITHIN_S
    return refused.value


async def tenant_ids(administration: Administration) -> list[str]:
    """The tenants that there are."""
    return [tenant.id for tenant in (await administration.list_tenants()).items]


async def test_postgres_away_changes_nothing(
    proxy: PostgresProxy, behind_proxy: Administration
) -> None:
    """Refused at once, and the same verb works as soon as Postgres is back."""
    await behind_proxy.create_tenant(ME, "before", "T")
    await proxy.refuse()
    refused = await refused_in_time(behind_proxy, "during")
    assert "nothing was changed" in refused.message
    await proxy.start()
    await behind_proxy.create_tenant(ME, "after", "T")
    assert await tenant_ids(behind_proxy) == ["after", "before"]


async def test_a_silent_postgres_is_given_up_within_two_seconds(
    proxy: PostgresProxy, behind_proxy: Administration, administration: Administration
) -> None:
    """Packets vanish (M19): refused in time, nothing stored, and the pool recovers."""
    await behind_proxy.create_tenant(ME, "before", "T")
    proxy.freeze()
    refused = await refused_in_time(behind_proxy, "during")
    assert refused.code == "store_unavailable"
    await proxy.refuse()
    await proxy.start()
    assert await tenant_ids(administration) == ["before"]
    await behind_proxy.create_tenant(ME, "after", "T")


async def test_a_lost_confirmation_is_said_to_be_unknown(
    proxy: PostgresProxy, behind_proxy: Administration
) -> None:
    """Where the commit was sent and no answer came, nobody claims that nothing was changed."""
    await behind_proxy.create_tenant(ME, "before", "T")
    proxy.freeze_at = b"COMMIT"
    refused = await refused_in_time(behind_proxy, "during")
    assert refused.code == "outcome_unknown"
    proxy.freeze_at = None
    await proxy.refuse()


async def test_a_restart_of_postgres_is_not_noticed(
    administration: Administration, database_url: str
) -> None:
    """Pooled connections that have died are replaced; the verb succeeds at the first call."""
    await tenant_ids(administration)
    other = async_engine(database_url, pooled=False)
    async with other.connect() as db:
        await db.execute(
            text(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        )
    await administration.create_tenant(ME, "acme", "T")
    assert await tenant_ids(administration) == ["acme"]
    await other.dispose()


async def test_a_writer_that_hangs_delays_others_two_seconds_at_most(
    administration: Administration, engine: AsyncEngine
) -> None:
    """Refused in time while another transaction holds the directory; afterwards nothing of the
    refused change appears."""
    async with engine.connect() as hanging:
        await hanging.execute(
            text("INSERT INTO tenant (id, name, currency, time_zone) VALUES ('h','H','USD','UTC')")
        )
        await refused_in_time(administration, "acme")
        await hanging.rollback()
    await administration.create_tenant(ME, "later", "T")
    assert await tenant_ids(administration) == ["later"]


async def test_a_database_without_schema_says_so(empty_database_url: str) -> None:
    """The message says what to run."""
    engine = async_engine(empty_database_url)
    with pytest.raises(StoreUnavailable, match="weir migrate"):
        await Administration(engine).create_tenant(ME, "acme", "T")
    await engine.dispose()


async def test_two_creations_at_once_are_one_and_a_conflict(
    administration: Administration,
) -> None:
    """Ten at the same moment: one succeeds, nine are told."""
    answers = await asyncio.gather(
        *(administration.create_tenant(ME, "acme", f"T{n}") for n in range(10)),
        return_exceptions=True,
    )
    refused = [answer for answer in answers if isinstance(answer, Conflict)]
    assert len(refused) == 9
    entries = (await administration.list_audit()).items
    assert [entry.action for entry in entries].count("tenant.create") == 1


async def published(redis: RedisClient) -> set[tuple[str, str]]:
    return {(each.kind, each.subject_id) for each in await read_revocations(redis, since_ms=0)}


async def test_revocations_go_to_redis(engine: AsyncEngine, redis_url: str) -> None:
    """A revoked key, a suspended tenant and a rotation without grace are published; that of a
    tenant until it is resumed."""
    redis = connect_redis(redis_url, timeout_ms=2000)
    administration = Administration(engine, redis=redis)
    await administration.create_tenant(ME, "acme", "T")
    revoked, _ = await administration.create_key(ME, "acme", "k", "batch")
    rotated, _ = await administration.create_key(ME, "acme", "k", "batch")
    await administration.revoke_key(ME, revoked.id)
    await administration.rotate_key(ME, rotated.id, grace_ms=0)
    await administration.update_tenant(ME, "acme", suspended=True)
    of_keys = {("key", revoked.id), ("key", rotated.id)}
    assert await published(redis) == {*of_keys, ("tenant", "acme")}
    await administration.update_tenant(ME, "acme", suspended=False)
    assert await published(redis) == of_keys
    await redis.aclose()


async def test_a_revocation_does_not_need_redis(engine: AsyncEngine, free_port: int) -> None:
    """With Redis away the key is revoked all the same, and soon."""
    redis = connect_redis(f"redis://127.0.0.1:{free_port}", timeout_ms=250)
    administration = Administration(engine, redis=redis)
    await administration.create_tenant(ME, "acme", "T")
    key, _ = await administration.create_key(ME, "acme", "k", "batch")
    began = time.monotonic()
    assert (await administration.revoke_key(ME, key.id)).revoked_at_ms is not None
    assert time.monotonic() - began < WITHIN_S
    await redis.aclose()
