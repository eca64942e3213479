"""More leases of one tenant than one script takes care of at once, in a real Redis."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from ledger_dump import kept_by_ledger

from gateway.adapters.ledger import RedisLedger
from gateway.adapters.redis import RedisClient, connect_redis
from gateway.domain.admission import LAPSED_KEEP_MS, Demand, Granted, Refused
from gateway.domain.scopes import ScopeLimits

START_MS = 1_800_000_000_000
TTL_MS = 10_000
HOUR_MS = 3_600_000
NAMES = ("tenant", "key:k", "model:m", "key:k/model:m")
MONTH = "2027-01"
MANY = 1_111
COST_PICO = 10**12 + 3


class Store:
    """A ledger whose clock stands until a test moves it."""

    def __init__(self, client: RedisClient) -> None:
        self.client = client
        self.now_ms = START_MS
        self.ledger = RedisLedger(
            client, ttl_ms=TTL_MS, timeout_ms=10_000, clock_ms=lambda: self.now_ms
        )

    async def acquire(self, *rids: str, most: int | None = None) -> list[object]:
        scopes = [ScopeLimits(name, 1, most, None, None) for name in NAMES]
        return await asyncio.gather(
            *(
                self.ledger.acquire(
                    "acme", "k", "m", Demand(rid, 1, 5, 5, COST_PICO, MONTH), scopes
                )
                for rid in rids
            )
        )

    async def grant_many(self) -> set[str]:
        rids = {f"{number:032x}" for number in range(MANY)}
        assert all(isinstance(each, Granted) for each in await self.acquire(*rids))
        return rids


@pytest.fixture
async def store(redis_url: str) -> AsyncIterator[Store]:
    client = connect_redis(redis_url, timeout_ms=10_000)
    yield Store(client)
    await client.aclose()


async def test_a_month_begins_with_what_every_lease_has_reserved(store: Store) -> None:
    """To the pico, and every one of them is named."""
    rids = await store.grant_many()
    begun = await store.ledger.begin_month("acme", MONTH)
    assert begun is not None
    assert begun.held == rids
    assert await store.ledger.finish_month("acme", MONTH, begun.at_ms, {})
    scopes = [ScopeLimits(name, 1, None, None, None) for name in NAMES]
    for use in await store.ledger.observe("acme", scopes, MONTH):
        assert use.reserved_pico == MANY * COST_PICO


async def test_all_that_is_due_lapses_and_is_forgotten_once(store: Store) -> None:
    """Whoever comes next takes care of all of it, and finds each once."""
    rids = await store.grant_many()
    store.now_ms += TTL_MS
    assert isinstance((await store.acquire("next", most=1))[0], Granted)
    kept = await kept_by_ledger(store.client, "acme", store.now_ms)
    assert (set(kept["leases"]), set(kept["lapsed"])) == ({"next"}, rids)
    assert kept["scopes"]["tenant"]["running"] == 1
    store.now_ms += LAPSED_KEEP_MS
    for _ in range(MANY // 100 + 2):
        held, lapsed = await store.ledger.reap("acme")
    assert (held, lapsed) == (0, 1)


async def test_all_are_kept_when_the_clock_returns(store: Store) -> None:
    """INV-2: one refusal at a wrong time ends none of them."""
    await store.grant_many()
    store.now_ms -= HOUR_MS
    assert isinstance((await store.acquire("one", most=MANY))[0], Refused)
    store.now_ms += HOUR_MS + 2_000
    assert isinstance((await store.acquire("two", most=MANY))[0], Refused)
    store.now_ms += TTL_MS
    assert isinstance((await store.acquire("three", most=MANY))[0], Granted)
