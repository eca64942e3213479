"""Which traces are kept: some by lot when they come, and of the rest those that tell something, so
many a second and no more."""

import random

from gateway.telemetry.tracing import TraceClock

PERMILLE = 1000


class Keeping:
    """The lot, and a bucket of tokens that fills evenly and holds one second's worth: however many
    requests fail at once, so many are kept."""

    def __init__(self, clock: TraceClock, *, ratio_permille: int, kept_per_s: int) -> None:
        self._clock = clock
        self._ratio_permille = ratio_permille
        self._kept_per_s = kept_per_s
        self._tokens = float(kept_per_s)
        self._at_us = clock.monotonic_us()

    def draw(self) -> bool:
        """Whether a request that comes is traced whatever becomes of it. Its trace's id has no part
        in this: a client chooses that."""
        return random.randrange(PERMILLE) < self._ratio_permille  # noqa: S311 - no secret

    def may_keep(self) -> bool:
        """Whether there is room for one more that was not drawn; then it is taken."""
        now_us = self._clock.monotonic_us()
        filled = (now_us - self._at_us) * self._kept_per_s / 1_000_000
        self._tokens = min(float(self._kept_per_s), self._tokens + filled)
        self._at_us = now_us
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True
