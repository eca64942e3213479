"""However many scrape, one reads."""

import asyncio

import pytest

from gateway.telemetry.shared_reading import PERIOD_S, SharedReading


class _Source:
    """Counts how often it is read, and when; a reading ends when it may."""

    def __init__(self) -> None:
        self.read_at: list[float] = []
        self.now = 0.0
        self.began = asyncio.Event()
        self.may_end = asyncio.Event()
        self.may_end.set()
        self.fails = False
        self.shared = SharedReading(self.read, now_s=lambda: self.now, sleep=self.sleep)

    async def sleep(self, span_s: float) -> None:
        """It is so much later."""
        self.now += span_s

    async def read(self) -> bytes:
        """The number of this reading."""
        self.read_at.append(self.now)
        number = len(self.read_at)
        self.began.set()
        await self.may_end.wait()
        if self.fails:
            raise ValueError
        return b"%d" % number


async def test_who_asks_at_once_shares_one_reading() -> None:
    """Twenty of them; who asks while it is made shares the next, a second later."""
    source = _Source()
    source.may_end.clear()
    first = [asyncio.create_task(source.shared.latest()) for _ in range(20)]
    await source.began.wait()
    second = [asyncio.create_task(source.shared.latest()) for _ in range(20)]
    await asyncio.sleep(0)
    source.may_end.set()
    assert await asyncio.gather(*first) == [b"1"] * 20
    assert await asyncio.gather(*second) == [b"2"] * 20
    assert source.read_at == [0.0, PERIOD_S]


async def test_who_asks_rarely_waits_for_nothing() -> None:
    """As a scrape each 15 s."""
    source = _Source()
    for number in range(3):
        source.now = number * 15.0
        await source.shared.latest()
    assert source.read_at == [0.0, 15.0, 30.0]


async def test_one_that_leaves_takes_nothing_from_the_others() -> None:
    """Though it was the first."""
    source = _Source()
    source.may_end.clear()
    first, second = (asyncio.create_task(source.shared.latest()) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.wait([first])
    source.may_end.set()
    assert await second == b"1"


async def test_a_reading_that_failed_is_made_again() -> None:
    """By the next who asks."""
    source = _Source()
    source.fails = True
    with pytest.raises(ValueError):  # noqa: PT011 - it says nothing
        await source.shared.latest()
    source.fails = False
    assert await source.shared.latest() == b"2"
