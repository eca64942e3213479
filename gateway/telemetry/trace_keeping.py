"""Which traces are kept: some by lot when they come, and of the rest those that tell something, so
many a second and no more."""

import random

from gateway.telemetry.shares import Shares
from gateway.telemetry.tracing import TraceClock

PERMILLE = 1000


class Keeping:
    """The lot, and shares of so many a second: however many requests fail at once, and whosever
    they are, so many are kept and others than the loudest are among them."""

    def __init__(self, clock: TraceClock, *, ratio_permille: int, kept_per_s: int) -> None:
        self._ratio_permille = ratio_permille
        self._shares = Shares(kept_per_s, clock.monotonic_us)

    def draw(self) -> bool:
        """Whether a request that comes is traced whatever becomes of it. Its trace's id has no part
        in this: a client chooses that."""
        return random.randrange(PERMILLE) < self._ratio_permille  # noqa: S311 - no secret

    def may_keep(self, who: str | None, why: str) -> bool:
        """Whether there is room for one more of this tenant that was not drawn; then it is taken.
        `why` is the code of its failure, or the reason to keep it."""
        return self._shares.take(who, why)
