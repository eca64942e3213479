"""One reading of all metrics for everybody who asks at once: it takes a gateway's core for some
milliseconds, however many scrape."""

import asyncio
import time
from collections.abc import Awaitable, Callable

PERIOD_S = 1.0


class SharedReading:
    """Reads once at a time, and at most once a second. Nobody is given what is older than its own
    question: who asks meanwhile waits for the next reading, together with all others."""

    def __init__(
        self,
        read: Callable[[], Awaitable[bytes]],
        *,
        now_s: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        """`read` reads them all as they are now; `now_s` is the clock that never jumps."""
        self._read = read
        self._now_s = now_s
        self._sleep = sleep
        self._next: asyncio.Task[bytes] | None = None
        self._one_at_a_time = asyncio.Lock()
        self._at_s: float | None = None

    async def latest(self) -> bytes:
        """As they are when this is asked, or later. Raises what `read` does."""
        if self._next is None:
            self._next = asyncio.create_task(self._reading())
        # Who leaves does not take the reading away from the others.
        return await asyncio.shield(self._next)

    async def _reading(self) -> bytes:
        async with self._one_at_a_time:
            if self._at_s is not None:
                await self._sleep(max(0.0, self._at_s + PERIOD_S - self._now_s()))
            self._next = None
            self._at_s = self._now_s()
            return await self._read()
