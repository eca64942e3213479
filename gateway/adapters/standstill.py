"""Whether this process stood still: it was stopped, its machine slept, or its loop was held up."""

import asyncio
import time
from collections.abc import Callable

TICK_S = 0.1
STOOD_STILL_S = 0.75
"""Longer than this between two ticks it stood still; less is within what is promised."""


class Standstill:
    """Ticks while the process runs, and so knows when it did not."""

    def __init__(self, monotonic_s: Callable[[], float] = time.monotonic) -> None:
        self._monotonic_s = monotonic_s
        self._ticked_at: float | None = None
        self._woke_at = -float("inf")

    @property
    def woke_at(self) -> float:
        """On the monotonic clock (s): what was seen before says nothing of now. Asked first of all
        after a standstill, before any tick, it is now."""
        self.tick()
        return self._woke_at

    def tick(self) -> None:
        """It runs."""
        now = self._monotonic_s()
        if self._ticked_at is not None:
            if now - self._ticked_at > STOOD_STILL_S:
                self._woke_at = now
            self._ticked_at = now

    async def run(self) -> None:
        """Tick, for ever: only meanwhile a standstill can be told."""
        self._ticked_at = self._monotonic_s()
        try:
            while True:
                await asyncio.sleep(TICK_S)
                self.tick()
        finally:
            self._ticked_at = None
