"""The time that a store has for a reply, counted while this process keeps up.

Where the event loop is held up, by a burst of requests for instance, a plain time-out runs out
though the reply has come long ago: nobody had the time to read it. So it is counted in turns of the
loop: a tenth of it at a time, each from when the one before was noticed. What passes meanwhile is
the process's own, and so is a last tenth that was noticed late.
"""

import asyncio
from types import TracebackType

HELD_UP_S = 0.02
"""A timer noticed so late says that this process was busy."""
PARTS = 10
PARTS_MORE = 10
"""So many last parts in a row may be late; then it is over, however busy this process is."""


class StoreTime:
    """`async with StoreTime(seconds)`: raises TimeoutError as `asyncio.timeout` does. None: any
    time."""

    def __init__(self, seconds: float | None) -> None:
        self._part_s = None if seconds is None else seconds / PARTS
        self._parts_left, self._more_left = PARTS, PARTS_MORE
        self._timeout = asyncio.timeout(None)
        self._due_s = 0.0
        self._timer: asyncio.TimerHandle | None = None

    async def __aenter__(self) -> None:
        await self._timeout.__aenter__()
        self._next()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        await self._timeout.__aexit__(kind, error, trace)

    def _next(self) -> None:
        if self._part_s is not None:
            loop = asyncio.get_running_loop()
            self._due_s = loop.time() + self._part_s
            self._timer = loop.call_at(self._due_s, self._over)

    def _over(self) -> None:
        now_s = asyncio.get_running_loop().time()
        self._parts_left -= 1
        if self._parts_left > 0:
            self._next()
        elif now_s - self._due_s >= HELD_UP_S and self._more_left > 0:
            self._more_left -= 1
            self._next()
        else:
            self._timeout.reschedule(now_s)
