"""A process that stood still knows it before it does anything else."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from gateway.adapters.standstill import STOOD_STILL_S, Standstill


class Time:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
async def ticking() -> AsyncIterator[tuple[Standstill, Time]]:
    """One that ticks."""
    time = Time()
    standstill = Standstill(time)
    task = asyncio.create_task(standstill.run())
    await asyncio.sleep(0)
    yield standstill, time
    task.cancel()
    await asyncio.wait([task])


async def test_it_woke_now_where_it_did_not_run(ticking: tuple[Standstill, Time]) -> None:
    """Whoever asks first is told, before any tick; and it stays so."""
    standstill, time = ticking
    time.now_s += STOOD_STILL_S - 0.01
    assert standstill.woke_at < 0
    time.now_s += STOOD_STILL_S + 0.01
    woke_at = time.now_s
    assert standstill.woke_at == woke_at
    time.now_s += 0.1
    assert standstill.woke_at == woke_at


async def test_what_does_not_tick_tells_of_no_standstill() -> None:
    """Before it runs and after it has ended nobody knows."""
    time = Time()
    standstill = Standstill(time)
    time.now_s += 10 * STOOD_STILL_S
    assert standstill.woke_at < 0
    task = asyncio.create_task(standstill.run())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    time.now_s += 10 * STOOD_STILL_S
    assert standstill.woke_at < 0
