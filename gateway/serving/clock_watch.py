"""A gateway whose clock is off the store's would put requests into wrong periods."""

import asyncio
import contextlib
from typing import Protocol

from gateway.serving.condition import Watch
from gateway.serving.ports import Clock, LedgerUnavailable

OFF_MS_MAX = 1_000
CHECK_S = 5.0


class StoresClock(Protocol):
    """The store's time."""

    async def clock_ms(self) -> int:
        """Unix ms. Raises LedgerUnavailable."""


async def watch_clock(watch: Watch, store: StoresClock, clock: Clock) -> None:
    """Say so in the gateway's condition; for ever."""
    while True:
        with contextlib.suppress(LedgerUnavailable):
            off_ms = abs(await store.clock_ms() - clock.now_ms())
            watch.clock_off = off_ms > OFF_MS_MAX
        await asyncio.sleep(CHECK_S)
