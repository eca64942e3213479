"""Calls back at instants fixed beforehand, whatever else goes on."""

import asyncio
import time
from collections.abc import Callable, Sequence

READY_AHEAD_S = 0.05
"""How long before its time a call is announced: more than a connection takes to open."""
SPIN_S = 0.001
"""A loop's timers are good to a millisecond. The last one is spent asking the clock."""
SPIN_CALLS_PER_S_MAX = 200
"""Above this, asking would use a fifth of a core and more: then a call is up to 1 ms late."""


class Pacer:
    """Announces and makes each of a sequence of calls, in order.

    `ready(n)` comes `READY_AHEAD_S` before the instant of call n, `due(n)` at it and never before.
    """

    def __init__(
        self,
        instants_s: Sequence[float],
        ready: Callable[[int], None],
        due: Callable[[int], None],
    ) -> None:
        """Instants are of `time.monotonic`, in ascending order."""
        self._instants_s = instants_s
        self._ready = ready
        self._due = due
        self._announced = 0
        self.called = 0
        """How many calls have been made."""
        self._timer: asyncio.Handle | None = None
        span_s = instants_s[-1] - instants_s[0] if instants_s else 0.0
        self._spin_s = SPIN_S if len(instants_s) <= SPIN_CALLS_PER_S_MAX * max(span_s, 1.0) else 0.0

    def start(self) -> None:
        """Begin. Calls are made from the running loop."""
        self._loop = asyncio.get_running_loop()
        self._tick()

    def stop(self) -> None:
        """Make no more calls."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _tick(self) -> None:
        instants_s, count = self._instants_s, len(self._instants_s)
        now_s = time.monotonic()
        while self._announced < count and instants_s[self._announced] - READY_AHEAD_S <= now_s:
            self._ready(self._announced)
            self._announced += 1
        while self.called < count and instants_s[self.called] <= now_s:
            self._due(self.called)
            self.called += 1
            now_s = time.monotonic()
        if self.called == count:
            self._timer = None
            return
        wait_s = instants_s[self.called] - now_s
        if wait_s <= self._spin_s:
            self._timer = self._loop.call_soon(self._tick)
            return
        wait_s -= self._spin_s
        if self._announced < count:
            wait_s = min(wait_s, instants_s[self._announced] - READY_AHEAD_S - now_s)
        self._timer = self._loop.call_later(max(wait_s, 0.0), self._tick)
