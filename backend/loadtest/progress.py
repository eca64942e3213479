"""What a person sees of a run: one line that lives on a terminal, one every 5 s in a log."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TextIO

LIVE_EVERY_S = 0.25
LOG_EVERY_S = 5.0
CLEAR = "\r\x1b[K"


@dataclass(frozen=True, slots=True)
class Counts:
    """How far a run is. Times are the target's."""

    elapsed_ms: float
    duration_ms: float
    """Of the schedule; what drains comes after it."""
    sent: int
    planned: int
    ok: int
    errors: int
    ttft_p95_ms: float | None

    @property
    def in_flight(self) -> int:
        """Sent, and not ended."""
        return self.sent - self.ok - self.errors


class Progress:
    """Writes to standard error or wherever it is told; never to standard output."""

    def __init__(
        self, stream: TextIO, *, live: bool, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._stream = stream
        self._live = live
        self._clock = clock
        self._label = ""
        self._due_s = 0.0
        self._shown = False

    def begin(self, label: str) -> None:
        """A run begins. What one line shows is called by this."""
        self._label = label
        self._due_s = self._clock() + (0.0 if self._live else LOG_EVERY_S)

    def show(self, counts: Counts) -> None:
        """Show it, unless something was shown a moment ago."""
        now_s = self._clock()
        if now_s < self._due_s:
            return
        self._due_s = now_s + (LIVE_EVERY_S if self._live else LOG_EVERY_S)
        line = f"{self._label}: {progress_line(counts)}"
        self._stream.write(CLEAR + line if self._live else line + "\n")
        self._stream.flush()
        self._shown = self._live

    def say(self, line: str) -> None:
        """A line that stays."""
        self.end()
        self._stream.write(line + "\n")
        self._stream.flush()

    def end(self) -> None:
        """Take the live line away."""
        if self._shown:
            self._stream.write(CLEAR)
            self._stream.flush()
            self._shown = False


def progress_line(counts: Counts) -> str:
    """Elapsed, sent, in flight, ok, errors, running p95 TTFT."""
    ttft = "-" if counts.ttft_p95_ms is None else f"{counts.ttft_p95_ms:,.0f} ms"
    return (
        f"{counts.elapsed_ms / 1000:.0f}{_part(counts)}, "
        f"sent {counts.sent} of {counts.planned}, in flight {counts.in_flight}, "
        f"ok {counts.ok}, errors {counts.errors}, TTFT p95 {ttft}"
    )


def _part(counts: Counts) -> str:
    duration_ms = counts.duration_ms
    return " s, draining" if counts.elapsed_ms > duration_ms else f" of {duration_ms / 1000:.0f} s"
