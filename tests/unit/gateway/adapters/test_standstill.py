"""A process that stood still knows it before it does anything else."""

import asyncio
import time
from collections.abc import AsyncIterator

import pytest

from gateway.adapters.standstill import STOOD_STILL_S, Standstill, clocks_s


class Time:
    """Clocks that are set by hand: the monotonic one, and one that goes on while a machine
    sleeps."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.asleep_s = 0.0

    def __call__(self) -> tuple[float, float]:
        return self.now_s, self.now_s + self.asleep_s


@pytest.fixture
async def ticking() -> AsyncIterator[tuple[Standstill, Time]]:
    """One that ticks."""
    clock = Time()
    standstill = Standstill(clock)
    task = asyncio.create_task(standstill.run())
    await asyncio.sleep(0)
    yield standstill, clock
    task.cancel()
    await asyncio.wait([task])


async def test_it_woke_now_where_it_did_not_run(ticking: tuple[Standstill, Time]) -> None:
    """Whoever asks first is told, before any tick; and it stays so."""
    standstill, clock = ticking
    clock.now_s += STOOD_STILL_S - 0.01
    assert standstill.woke_at < 0
    clock.now_s += STOOD_STILL_S + 0.01
    woke_at = clock.now_s
    assert standstill.woke_at == woke_at
    clock.now_s += 0.1
    assert standstill.woke_at == woke_at


async def test_a_machine_that_slept_stood_still_although_its_monotonic_clock_did_too(
    ticking: tuple[Standstill, Time],
) -> None:
    """What was seen before the sleep was seen before `woke_at`; a clock put back tells of none."""
    standstill, clock = ticking
    clock.asleep_s += 600.0
    clock.now_s += 0.1
    assert standstill.woke_at == clock.now_s
    woke_at, clock.asleep_s, clock.now_s = clock.now_s, 0.0, clock.now_s + 0.1
    assert standstill.woke_at == woke_at


def test_a_real_clock_goes_on_while_a_machine_sleeps() -> None:
    """The monotonic one is the first; the others tell of what it does not."""
    monotonic_s, *others = clocks_s()
    assert abs(monotonic_s - time.monotonic()) < 10
    assert len(others) == 2
    assert abs(others[-1] - time.time()) < 10


async def test_what_does_not_tick_tells_of_no_standstill() -> None:
    """Before it runs and after it has ended nobody knows."""
    clock = Time()
    standstill = Standstill(clock)
    clock.now_s += 10 * STOOD_STILL_S
    assert standstill.woke_at < 0
    task = asyncio.create_task(standstill.run())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    clock.now_s += 10 * STOOD_STILL_S
    assert standstill.woke_at < 0
