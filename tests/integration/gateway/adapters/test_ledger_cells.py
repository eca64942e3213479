"""Seconds in which so much was charged that it does not fit into a window's narrow layout: they are
kept in the wide one, to the token, and the tenant goes the cheap way again when they have aged."""

from collections.abc import AsyncIterator

import pytest
from ledger_counts import NAMES, OTHER, USUAL, Counted
from ledger_dump import kept_by_ledger

from gateway.adapters.redis import connect_redis
from gateway.domain.admission import Granted
from gateway.domain.scopes import ScopeLimits

LOOSE = tuple(ScopeLimits(name, 1, None, None, None) for name in NAMES)
WINDOW_MS = 61_000
FITS = 2**24 - 1


@pytest.fixture
async def counted(redis_url: str) -> AsyncIterator[Counted]:
    client = connect_redis(redis_url, timeout_ms=5_000)
    yield Counted(client, LOOSE)
    await client.aclose()


async def assert_cells(counted: Counted, expected: dict[int, tuple[int, int]]) -> None:
    """In all four scopes."""
    kept = await kept_by_ledger(counted.client, "acme", counted.now_ms)
    assert [kept["scopes"][name]["cells"] for name in NAMES] == [expected] * 4


@pytest.mark.parametrize("tokens", [FITS + 1, 2**33 + 1, 2**52])
async def test_what_does_not_fit_is_kept_to_the_token(counted: Counted, tokens: int) -> None:
    """Charged, given back and aged as anything else, beside what would fit."""
    first_s = counted.now_ms // 1000
    await counted.acquire("before", 10)
    counted.now_ms += 1_000
    big, _ = await counted.acquire("big", tokens)
    assert isinstance(big, Granted)
    counted.now_ms += 1_000
    _, reads = await counted.acquire("after", 3)
    assert reads == OTHER, "the second of `big` becomes an older one"
    await assert_cells(counted, {first_s: (10, 1), first_s + 1: (tokens, 1), first_s + 2: (3, 1)})
    assert await counted.settle("before", first_s, 2) == OTHER
    assert await counted.settle("big", big.second, tokens - 1, reserved=tokens) == OTHER
    await assert_cells(
        counted, {first_s: (2, 1), first_s + 1: (tokens - 1, 1), first_s + 2: (3, 1)}
    )
    await counted.settle("after", first_s + 2, 3, reserved=3)
    counted.now_ms += WINDOW_MS - 1_000
    await counted.acquire("later", 5)
    await assert_cells(counted, {first_s + 2: (3, 1), first_s + 62: (5, 1)})


async def test_the_cheap_way_comes_back_when_it_has_aged(counted: Counted) -> None:
    """A minute after the second that did not fit, grants and settlements are usual again."""
    for name, tokens in (("big", FITS + 1), ("after", 3)):
        granted, reads = await counted.acquire(name, tokens)
        assert isinstance(granted, Granted)
        await counted.settle(name, granted.second, tokens, reserved=tokens)
        counted.now_ms += 1_000
    granted, reads = await counted.acquire("while it counts", 10)
    assert isinstance(granted, Granted)
    assert reads == OTHER
    await counted.settle("while it counts", granted.second, 10)
    counted.now_ms += WINDOW_MS + 4_000
    await counted.acquire("first", 10)
    granted, reads = await counted.acquire("second", 10)
    assert isinstance(granted, Granted)
    assert reads == USUAL
    counted.now_ms += 1_000
    assert await counted.settle("second", granted.second, 7) == USUAL


async def test_the_cheap_way_comes_back_to_a_tenant_that_never_rests(counted: Counted) -> None:
    """With older cells in every second of the minute."""
    for number, tokens in enumerate((FITS + 1, *[10] * 62)):
        granted, _ = await counted.acquire(f"each second {number}", tokens)
        assert isinstance(granted, Granted)
        await counted.settle(f"each second {number}", granted.second, tokens, reserved=tokens)
        counted.now_ms += 1_000
    counted.now_ms -= 1_000
    first_s = counted.now_ms // 1000 - 60
    await assert_cells(counted, {first_s + second: (10, 1) for second in range(61)})
    _, reads = await counted.acquire("usual", 10)
    assert reads == USUAL


async def test_the_most_that_fits_goes_the_cheap_way(counted: Counted) -> None:
    """To the token, from there on too."""
    await counted.acquire("first", 10)
    most, reads = await counted.acquire("most", FITS - 10)
    assert (isinstance(most, Granted), reads) == (True, USUAL)
    first_s = counted.now_ms // 1000
    counted.now_ms += 1_000
    _, reads = await counted.acquire("after", 10)
    assert reads == USUAL
    await assert_cells(counted, {first_s: (FITS, 2), first_s + 1: (10, 1)})
