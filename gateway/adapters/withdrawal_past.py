"""What Redis knows as withdrawn and Postgres does not, since it was restored from a backup."""

import time
from collections.abc import Sequence

from redis.exceptions import RedisError
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.adapters.redis import RedisClient
from gateway.adapters.revocations import REVOKED_KEPT_MS, Revocation, read_revocations
from gateway.adapters.tables import api_key, tenant
from gateway.domain.instants import instant_of
from gateway.serving.ports import LedgerUnavailable


async def load_withdrawn(redis: RedisClient) -> list[Revocation]:
    """All that Redis knows, the newest of each key and tenant. Raises LedgerUnavailable."""
    since_ms = time.time_ns() // 1_000_000 - REVOKED_KEPT_MS
    try:
        known = await read_revocations(redis, since_ms=since_ms)
    except (RedisError, OSError, TimeoutError) as error:
        raise LedgerUnavailable(type(error)) from error
    known.sort(key=lambda each: each.changed)
    newest = {(each.kind, each.subject_id): each for each in known}
    return [newest[subject] for subject in sorted(newest)]


async def lost_withdrawals(
    connection: AsyncConnection, known: Sequence[Revocation]
) -> list[Revocation]:
    """Those of keys and tenants that are there, and good by what Postgres says."""
    keys, tenants = api_key.c, tenant.c
    lost = []
    for each in known:
        if each.kind == "key":
            is_good = keys.revoked_at.is_(None) & (
                keys.expires_at.is_(None) | (keys.expires_at > instant_of(each.at_ms))
            )
            query = select(keys.id).where(keys.id == each.subject_id, is_good)
        else:
            is_good = tenants.suspended_at.is_(None) & (tenants.resumed_change < each.changed)
            query = select(tenants.id).where(tenants.id == each.subject_id, is_good)
        if await connection.scalar(query) is not None:
            lost.append(each)
    return lost
