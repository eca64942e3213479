"""Many at once on one real Redis, over several connections, by the server's own clock."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from gateway.adapters.ledger import RedisLedger
from gateway.adapters.redis import connect_redis
from gateway.domain.admission import Demand, Granted, Refused, Settled
from gateway.domain.scopes import ScopeLimits
from gateway.serving.ports import HeldLease

NAMES = ("tenant", "key:k", "model:m", "key:k/model:m")


@pytest.fixture
async def replicas(redis_url: str) -> AsyncIterator[list[RedisLedger]]:
    """Three gateways' ledgers, each with a connection of its own."""
    clients = [connect_redis(redis_url, timeout_ms=10_000) for _ in range(3)]
    yield [RedisLedger(client, ttl_ms=60_000, timeout_ms=10_000) for client in clients]
    for client in clients:
        await client.aclose()


def limits(
    max_sequences: int | None = None, tpm: int | None = None, rpm: int | None = None
) -> list[ScopeLimits]:
    return [ScopeLimits(name, 1, max_sequences, tpm, rpm) for name in NAMES]


async def burst(
    replicas: list[RedisLedger], count: int, scopes: list[ScopeLimits], tokens: int = 10
) -> list[object]:
    """So many decisions at once, in turn over the replicas."""
    return await asyncio.gather(
        *(
            replicas[number % 3].acquire(
                "acme", "k", "m", Demand(f"{number:03}", 1, tokens, tokens), scopes
            )
            for number in range(count)
        )
    )


async def test_c05_two_hundred_at_once_over_three_replicas(replicas: list[RedisLedger]) -> None:
    """C05: a limit of ten: exactly ten run, whichever replica was asked."""
    decisions = await burst(replicas, 200, limits(max_sequences=10))
    assert sum(isinstance(decision, Granted) for decision in decisions) == 10
    assert sum(isinstance(decision, Refused) for decision in decisions) == 190


async def test_l11_a_flood_is_decided_one_by_one(replicas: list[RedisLedger]) -> None:
    """L11, R01: 100 a minute, 150 at once of 40 tokens each: two. No decision is made on what was
    read before another one's."""
    decisions = await burst(replicas, 150, limits(tpm=100), tokens=40)
    assert sum(isinstance(decision, Granted) for decision in decisions) == 2


async def test_l22_a_burst_within_a_blink_is_counted_whole(replicas: list[RedisLedger]) -> None:
    """L22: four a minute, 300 as fast as they can be asked: four, on the server's own clock."""
    decisions = await burst(replicas, 300, limits(rpm=4))
    assert sum(isinstance(decision, Granted) for decision in decisions) == 4
    waits = [each.retry_after_ms or 0 for each in decisions if isinstance(each, Refused)]
    assert all(50_000 < wait_ms <= 61_000 for wait_ms in waits)


async def test_b06_another_replica_sees_a_settlement_at_once(replicas: list[RedisLedger]) -> None:
    """B06: nothing is remembered in a gateway: what one has settled, the next look through another
    one shows."""
    first, second, third = replicas
    scopes = limits(max_sequences=5, tpm=1_000)
    granted = await first.acquire("acme", "k", "m", Demand("a", 2, 100, 100), scopes)
    assert isinstance(granted, Granted)
    running = (await second.observe("acme", scopes))[0]
    assert (running.sequences, running.tokens) == (2, 100)
    lease = HeldLease("a", "acme", "k", "m", 2, 100, granted.second, NAMES)
    await third.settle(lease, actual_tokens=30, ran=True)
    ended = (await second.observe("acme", scopes))[0]
    assert (ended.sequences, ended.tokens, ended.requests) == (0, 30, 1)


async def test_a_settlement_that_is_repeated_at_once_changes_nothing(
    replicas: list[RedisLedger],
) -> None:
    """The reply was lost on the way: the usual case of a settlement meets one that is over."""
    scopes = limits(max_sequences=5, tpm=1_000)
    granted = await replicas[0].acquire("acme", "k", "m", Demand("a", 1, 100, 100), scopes)
    assert isinstance(granted, Granted)
    lease = HeldLease("a", "acme", "k", "m", 1, 100, granted.second, NAMES)
    found = [await each.settle(lease, actual_tokens=30, ran=True) for each in replicas]
    assert found == [Settled.LIVE, Settled.REPEATED, Settled.REPEATED]
    (use, *_) = await replicas[0].observe("acme", scopes)
    assert (use.sequences, use.tokens, use.requests) == (0, 30, 1)
