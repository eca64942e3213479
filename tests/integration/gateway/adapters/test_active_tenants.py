"""Which tenants may hold something, and whose turn it is to look, on a real Redis."""

from collections.abc import AsyncIterator

import pytest

from gateway.adapters.ledger import RedisLedger
from gateway.adapters.redis import connect_redis
from gateway.domain.scopes import ScopeLimits

MANY = 1_000


@pytest.fixture
async def ledger(redis_url: str) -> AsyncIterator[RedisLedger]:
    client = connect_redis(redis_url, timeout_ms=5_000)
    yield RedisLedger(client, ttl_ms=10_000, timeout_ms=5_000)
    await client.aclose()


async def test_pages_together_are_all(ledger: RedisLedger) -> None:
    """None is left out, also where those before it are taken out meanwhile."""
    names = [f"t{n}" for n in range(MANY)]
    await ledger.mark_active(names, now_ms=5)
    seen: set[str] = set()
    cursor, pages, is_last = 0, 0, False
    while not is_last:
        cursor, page = await ledger.active_page(cursor)
        await ledger.take_out(page, before_ms=6)
        seen |= set(page)
        pages, is_last = pages + 1, cursor == 0
    assert seen == set(names)
    assert pages > 1
    assert await ledger.active_tenants(MANY) == []


async def test_who_was_marked_meanwhile_stays(ledger: RedisLedger) -> None:
    """A gateway relies on its mark: only older ones go."""
    await ledger.mark_active(["old"], now_ms=5)
    await ledger.mark_active(["new"], now_ms=6)
    await ledger.take_out(["old", "new", "unknown"], before_ms=6)
    assert await ledger.active_tenants(9) == ["new"]
    await ledger.take_out([], before_ms=9)


async def test_a_turn_is_its_holders_to_keep(ledger: RedisLedger) -> None:
    """And lapses by itself."""
    assert await ledger.claim_sweep("a", for_ms=60_000)
    assert not await ledger.claim_sweep("b", for_ms=1)
    assert await ledger.claim_sweep("a", for_ms=1)
    while not await ledger.claim_sweep("b", for_ms=60_000):
        pass
    assert not await ledger.claim_sweep("a", for_ms=1)


async def test_who_begins_in_the_store_is_active(ledger: RedisLedger, redis_url: str) -> None:
    """After a loss of everything a tenant can be found again as soon as anything is told of it, not
    only when its gateway's next mark is due."""
    await ledger.observe("acme", [ScopeLimits("tenant", 1, 1, None, None)])
    assert await ledger.active_tenants(9) == ["acme"]
