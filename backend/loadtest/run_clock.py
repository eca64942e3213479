"""The time of one run, in the target's milliseconds."""

import time
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RunClock:
    """Zero is the start of the schedule. A target whose clock runs `speed` times as fast as ours is
    sent everything that much sooner, and what is measured is that much longer."""

    start_s: float
    """On `time.monotonic`."""
    speed: float = 1.0

    def ms(self, at_s: float) -> float:
        """The target's time at an instant of `time.monotonic`."""
        return (at_s - self.start_s) * 1000 * self.speed

    def now_ms(self) -> float:
        """The target's time now."""
        return self.ms(time.monotonic())

    def at_s(self, ms: float) -> float:
        """The instant of `time.monotonic` at a time of the target's."""
        return self.start_s + ms / 1000 / self.speed
