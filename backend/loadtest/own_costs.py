"""What the load generator itself took and how late it was, from the start of a schedule to its end.

The drain after it is left out: then there is little to do, and that would make up for a schedule
that the generator could not keep.
"""

import time
from array import array
from collections.abc import Callable

from backend.loadtest.percentiles import nearest_rank
from backend.loadtest.run_clock import RunClock


class OwnCosts:
    """Told of every look at the sockets, it knows the lag and the processor time."""

    def __init__(
        self,
        clock: RunClock,
        duration_ms: float,
        process_s: Callable[[], float] = time.process_time,
    ) -> None:
        self._start_s = clock.at_s(0.0)
        self._end_s = clock.at_s(duration_ms)
        self._process_s = process_s
        self._lags_ms = array("f")
        self._from: tuple[float, float] | None = None
        self._to: tuple[float, float] | None = None
        self._over = False

    def looked(self, due_s: float, now_s: float) -> None:
        """A look that was due then came now, on `time.monotonic`."""
        if now_s < self._start_s or self._over:
            return
        if due_s < self._end_s:
            self._lags_ms.append(max(0.0, now_s - due_s) * 1000)
        self._measure(now_s)

    def end(self, now_s: float) -> None:
        """The run is over, perhaps before its schedule."""
        if now_s >= self._start_s and not self._over:
            self._measure(now_s)
        self._over = True

    def _measure(self, now_s: float) -> None:
        self._to = (now_s, self._process_s())
        if self._from is None:
            self._from = self._to
        self._over = now_s >= self._end_s

    @property
    def lag_p99_ms(self) -> float:
        """Of looks that were due, in real milliseconds."""
        return nearest_rank(sorted(self._lags_ms), 99) if self._lags_ms else 0.0

    @property
    def cpu_share(self) -> float:
        """Processor time of this process per second: 1.0 is a whole core."""
        if self._from is None or self._to is None or self._to[0] <= self._from[0]:
            return 0.0
        return (self._to[1] - self._from[1]) / (self._to[0] - self._from[0])
