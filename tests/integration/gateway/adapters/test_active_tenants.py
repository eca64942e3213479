"""Which tenants may hold something, and whose turn it is to look, on a real Redis."""

import time
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from gateway.adapters.ledger import RedisLedger
from gateway.adapters.redis import connect_redis
from gateway.domain.scopes import ScopeLimits
from gateway.serving.sweeping import IDLE_MS

MANY = 1_000
SCOPE = ScopeLimits("tenant", 1, 1, None, None)


@dataclass
class BornAt:
    """A store that remembers since then."""

    ms: int

    async def born_ms(self, tenant_id: str) -> int:
        return self.ms


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


async def test_a_look_at_an_idle_tenant_marks_it_not(ledger: RedisLedger) -> None:
    """Its page is not why it would be active; who asks for something is, also refused."""
    await ledger.observe("acme", [SCOPE])
    await ledger.reap("other")
    assert await ledger.active_tenants(9) == []
    await ledger.begin_month("new", "2026-12")
    assert await ledger.active_tenants(9) == ["new"]


async def test_who_begins_in_a_store_that_lost_everything_is_active(redis_url: str) -> None:
    """A tenant can be found again as soon as anything is told or asked of it, not only when its
    gateway's next mark is due: until then a gateway relies on one that is gone."""
    client = connect_redis(redis_url, timeout_ms=5_000)
    born = BornAt(ms=int(time.time() * 1000) - IDLE_MS // 2)
    ledger = RedisLedger(client, ttl_ms=10_000, timeout_ms=5_000, births=born)
    await ledger.observe("acme", [SCOPE])
    assert await ledger.active_tenants(9) == ["acme"]
    born.ms -= IDLE_MS
    await ledger.observe("later", [SCOPE])
    assert await ledger.active_tenants(9) == ["acme"]
    await client.aclose()
