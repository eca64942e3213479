"""The usual grant and the usual settlement go the cheap way: were they to stop, every decision
would still be right, and cost twice as much."""

from collections.abc import AsyncIterator

import pytest
from ledger_counts import NAMES, OTHER, USUAL, Counted

from gateway.adapters.redis import connect_redis
from gateway.domain.admission import Granted, Refused
from gateway.domain.scopes import ScopeLimits

LIMITS = tuple(ScopeLimits(name, 1, 20, 1_000, 200) for name in NAMES)


@pytest.fixture
async def counted(redis_url: str) -> AsyncIterator[Counted]:
    client = connect_redis(redis_url, timeout_ms=5_000)
    yield Counted(client, LIMITS)
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
