"""Revocations in Redis, so that they are seen also by a gateway that Postgres does not answer.

One sorted set; a member is `key:<id>:<changed>` or `tenant:<id>:<changed>`, scored by the Unix
milliseconds of the revocation. `changed` is the number of the row's change in Postgres: a tenant
that was resumed by a later one (`resumed_change`) knows better than the entry, also where that
could not be removed. No other change of a row undoes it.
"""

import asyncio
import logging
from dataclasses import dataclass

from redis.exceptions import RedisError

from gateway.adapters.redis import RedisClient

REVOKED_KEY = "weir:revoked"
KEPT_MS = 24 * 3600 * 1000
"""For how long Postgres may not answer before nobody is served any more."""
REVOKED_KEPT_MS = 8 * KEPT_MS
"""A backup may be a week old: what it has lost is known here, and is written again."""
PUBLISH_TIMEOUT_S = 0.25
READ_TIMEOUT_S = 0.4
CLOCK_SKEW_MS = 600_000
"""How far behind another host's clock may be without its revocations being missed."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Revocation:
    """A key that was revoked, or a tenant that was suspended, as its row's change `changed`."""

    kind: str
    """`key` or `tenant`."""
    subject_id: str
    changed: int
    at_ms: int


async def publish_revocation(redis: RedisClient, revocation: Revocation) -> bool:
    """Tell every gateway, within 0.25 s. False where Redis did not take it: Postgres has it."""
    member = f"{revocation.kind}:{revocation.subject_id}:{revocation.changed}"
    try:
        async with asyncio.timeout(PUBLISH_TIMEOUT_S):
            await redis.zadd(REVOKED_KEY, {member: revocation.at_ms})
            await redis.zremrangebyscore(REVOKED_KEY, "-inf", revocation.at_ms - REVOKED_KEPT_MS)
    except (RedisError, OSError, TimeoutError) as error:
        logger.warning("revocation not published to Redis: %s", type(error).__name__)
        return False
    return True


async def forget_revocations(redis: RedisClient, kind: str, subject_id: str) -> bool:
    """Of a tenant that is resumed: a backup from before that would be taken to lack the
    suspension. Within 0.25 s; False where Redis did not take it."""
    try:
        async with asyncio.timeout(PUBLISH_TIMEOUT_S):
            members = await redis.zrangebyscore(REVOKED_KEY, "-inf", "+inf")
            prefix = f"{kind}:{subject_id}:".encode()
            for member in members:
                if member.startswith(prefix):
                    await redis.zrem(REVOKED_KEY, member)
    except (RedisError, OSError, TimeoutError) as error:
        logger.warning("revocation not removed from Redis: %s", type(error).__name__)
        return False
    return True


async def last_revocation(redis: RedisClient, kind: str, subject_id: str) -> int:
    """The newest change of that subject's revocations, within 0.25 s; 0 where none is known, or
    Redis does not answer."""
    try:
        async with asyncio.timeout(PUBLISH_TIMEOUT_S):
            known = await read_revocations(redis, since_ms=0)
    except (RedisError, OSError, TimeoutError) as error:
        logger.warning("revocations not read from Redis: %s", type(error).__name__)
        return 0
    of_it = (each for each in known if (each.kind, each.subject_id) == (kind, subject_id))
    return max((each.changed for each in of_it), default=0)


async def read_revocations(redis: RedisClient, *, since_ms: int) -> list[Revocation]:
    """Those scored `since_ms` or later. Raises what the driver raises, TimeoutError after 0.4 s."""
    async with asyncio.timeout(READ_TIMEOUT_S):
        reply = await redis.zrangebyscore(REVOKED_KEY, since_ms, "+inf", withscores=True)
    parsed = (_parsed(member.decode(), int(score)) for member, score in reply)
    return [revocation for revocation in parsed if revocation is not None]


def _parsed(text: str, at_ms: int) -> Revocation | None:
    kind, _, rest = text.partition(":")
    subject_id, _, changed = rest.rpartition(":")
    if kind not in ("key", "tenant") or not changed.isdigit():
        logger.warning("an entry of %s is none of Weir's and is passed over", REVOKED_KEY)
        return None
    return Revocation(kind=kind, subject_id=subject_id, changed=int(changed), at_ms=at_ms)
