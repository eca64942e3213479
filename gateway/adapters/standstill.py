"""Whether this process stood still: it was stopped, its machine slept, or its loop was held up."""

import asyncio
import time
from collections.abc import Callable, Sequence

TICK_S = 0.1
STOOD_STILL_S = 0.75
"""Longer than this between two ticks it stood still; less is within what is promised."""


def clocks_s() -> tuple[float, ...]:
    """The clocks that a standstill may show on, the monotonic one first. That one stands still with
    a machine that sleeps, also a virtual one that was paused: where there is one that does not
    (`CLOCK_BOOTTIME`) it says so, and else the wall clock does."""
    boottime = getattr(time, "CLOCK_BOOTTIME", None)
    asleep = () if boottime is None else (time.clock_gettime(boottime),)
    return (time.monotonic(), *asleep, time.time())


class Standstill:
    """Ticks while the process runs, and so knows when it did not."""

    def __init__(self, read_s: Callable[[], Sequence[float]] = clocks_s) -> None:
        self._read_s = read_s
        self._ticked_at: Sequence[float] | None = None
        self._woke_at = -float("inf")

    @property
    def woke_at(self) -> float:
        """On the monotonic clock (s): what was seen before says nothing of now. Asked first of all
        after a standstill, before any tick, it is now."""
        self.tick()
        return self._woke_at

    def tick(self) -> None:
        """It runs."""
        now = self._read_s()
        if self._ticked_at is not None:
            gap_s = max(new - old for new, old in zip(now, self._ticked_at, strict=True))
            if gap_s > STOOD_STILL_S:
                self._woke_at = now[0]
            self._ticked_at = now

    async def run(self) -> None:
        """Tick, for ever: only meanwhile a standstill can be told."""
        self._ticked_at = self._read_s()
        try:
            while True:
                await asyncio.sleep(TICK_S)
                self.tick()
        finally:
            self._ticked_at = None
