"""The usual grant and the usual settlement go the cheap way: were they to stop, every decision
would still be right, and cost twice as much."""

from collections.abc import AsyncIterator

import pytest

from gateway.adapters.ledger import RedisLedger
from gateway.adapters.redis import RedisClient, connect_redis
from gateway.domain.admission import Demand, Granted, Refused, Settled
from gateway.domain.scopes import ScopeLimits
from gateway.serving.ports import HeldLease

START_MS = 1_800_000_000_000
TTL_MS = 10_000
NAMES = ("tenant", "key:k", "model:m", "key:k/model:m")
LIMITS = tuple(ScopeLimits(name, 1, 20, 1_000, 200) for name in NAMES)
USUAL, OTHER = 1, 2
"""How often the book is read: a script that leaves the usual way reads it again."""


class Counted:
    """A ledger whose every call says how often it read the book."""

    def __init__(self, client: RedisClient) -> None:
        self.now_ms = START_MS
        self.client = client
        self.ledger = RedisLedger(
            client, ttl_ms=TTL_MS, timeout_ms=5_000, clock_ms=lambda: self.now_ms
        )

    async def acquire(self, rid: str, tokens: int = 10) -> tuple[Granted | Refused, int]:
        before = await self._reads()
        reply = await self.ledger.acquire("acme", "k", "m", Demand(rid, 1, tokens, tokens), LIMITS)
        assert isinstance(reply, Granted | Refused)
        return reply, await self._reads() - before

    async def settle(self, rid: str, second: int, tokens: int, *, ran: bool = True) -> int:
        lease = HeldLease(rid, "acme", "k", "m", 1, 10, second, NAMES)
        before = await self._reads()
        assert await self.ledger.settle(lease, actual_tokens=tokens, ran=ran) is Settled.LIVE
        return await self._reads() - before

    async def _reads(self) -> int:
        (stats,) = await self.client.info("commandstats")
        line = stats.get("cmdstat_hmget", "calls=0")
        return int(line.split(",")[0].removeprefix("calls="))


@pytest.fixture
async def counted(redis_url: str) -> AsyncIterator[Counted]:
    client = connect_redis(redis_url, timeout_ms=5_000)
    yield Counted(client)
    await client.aclose()


async def test_what_is_usual_goes_the_cheap_way(counted: Counted) -> None:
    """A grant to a tenant that is known and its settlement, in the same second and in later ones,
    with less used than was reserved, as much, more, and nothing at all."""
    await counted.acquire("first")
    for number, (used, ran) in enumerate([(7, True), (10, True), (13, True), (0, False)]):
        for pause_ms in (0, 1_000, 2_500):
            rid = f"{number}-{pause_ms}"
            granted, reads = await counted.acquire(rid)
            assert isinstance(granted, Granted)
            assert reads == USUAL
            counted.now_ms += pause_ms // 4
            assert await counted.settle(rid, granted.second, used, ran=ran) == USUAL


async def test_what_is_not_usual_is_left_to_the_rest(counted: Counted) -> None:
    """Refused, repeated, on a clock that stepped back, and with what a limit does not let be."""
    await counted.acquire("first")
    refused, reads = await counted.acquire("too much", 991)
    assert isinstance(refused, Refused)
    assert reads == OTHER
    _, reads = await counted.acquire("first")
    assert reads == OTHER
    counted.now_ms -= 2_000
    _, reads = await counted.acquire("second")
    assert reads == OTHER
