"""A time-out that does not count what this process is held up."""

import asyncio
import time

import pytest

from gateway.serving.store_time import StoreTime

TIME_S = 0.1


async def held_up(for_s: float, at_once_s: float) -> None:
    """This process has no time, again and again."""
    began = time.monotonic()
    while time.monotonic() - began < for_s:
        await asyncio.sleep(0)
        time.sleep(at_once_s)  # noqa: ASYNC251 - what is tested


async def test_a_reply_in_time_is_had() -> None:
    async with StoreTime(TIME_S):
        await asyncio.sleep(TIME_S / 2)
    async with StoreTime(None):
        await asyncio.sleep(TIME_S / 2)


async def test_without_a_reply_it_is_over_in_time() -> None:
    began = time.monotonic()
    with pytest.raises(TimeoutError):
        async with StoreTime(TIME_S):
            await asyncio.sleep(60)
    assert TIME_S <= time.monotonic() - began < 3 * TIME_S


@pytest.mark.parametrize("at_once_s", [0.015, 0.04, 0.3])
async def test_what_this_process_is_held_up_is_not_counted(at_once_s: float) -> None:
    """The reply comes half the time after that, as it would at rest."""
    async with StoreTime(TIME_S):
        await asyncio.sleep(0)
        await held_up(1.3 * TIME_S, at_once_s)
        await asyncio.sleep(0)


async def test_it_ends_however_busy_this_process_is() -> None:
    """A store that is gone is noticed."""
    busy = asyncio.create_task(held_up(60, 0.025))
    with pytest.raises(TimeoutError):
        async with StoreTime(TIME_S / 10):
            await asyncio.sleep(60)
    busy.cancel()


async def test_what_is_raised_inside_goes_on() -> None:
    with pytest.raises(ValueError, match="mine"):
        async with StoreTime(TIME_S):
            raise ValueError("mine")
