"""So many a second, of which nobody takes all: what one tenant repeats does not hide what befalls
others, and what is rare finds room in any flood."""

from collections.abc import Callable

RARE = frozenset({"worker_failed", "worker_timeout", "internal_error", "gateway_lost"})
"""Why something failed that always tells of us."""
PARTS = 5
"""One tenant takes at most this part of all for one reason, and as much is reserved for `RARE`."""
_KNOWN_MAX = 1_000


class _Bucket:
    """Fills evenly and holds one second's worth."""

    def __init__(self, per_s: int, now_us: int) -> None:
        self._per_s = per_s
        self._at_us = now_us
        self.tokens = float(per_s)

    def fill(self, now_us: int) -> float:
        """What it holds now."""
        filled = (now_us - self._at_us) * self._per_s / 1_000_000
        self.tokens = min(float(self._per_s), self.tokens + filled)
        self._at_us = now_us
        return self.tokens

    @property
    def is_full(self) -> bool:
        """Whether it held a whole second's worth when it was last looked at."""
        return self.tokens >= self._per_s


class Shares:
    """The bound of all, and of each tenant for each reason."""

    def __init__(self, per_s: int, now_us: Callable[[], int]) -> None:
        """`now_us` is the clock that never jumps, in microseconds."""
        self._now_us = now_us
        self._all = _Bucket(per_s, now_us())
        self._reserved = per_s // PARTS
        self._share = max(1, -(-per_s // PARTS))
        self._of: dict[tuple[str | None, str], _Bucket] = {}

    def take(self, who: str | None, why: str) -> bool:
        """Whether there is room for one more of this tenant (None: not known) and reason, one of a
        bounded number; then it is taken."""
        now_us = self._now_us()
        needed = 1 if why in RARE else 1 + self._reserved
        if self._all.fill(now_us) < needed:
            return False
        own = self._of.get((who, why))
        if own is None:
            if len(self._of) >= _KNOWN_MAX:
                self._forget(now_us)
            own = self._of[who, why] = _Bucket(self._share, now_us)
        if own.fill(now_us) < 1:
            return False
        self._all.tokens -= 1
        own.tokens -= 1
        return True

    def _forget(self, now_us: int) -> None:
        """Those that have their whole share again are as those that never came. All others took
        something within the last second, so there are not many."""
        for bucket in self._of.values():
            bucket.fill(now_us)
        self._of = {who: bucket for who, bucket in self._of.items() if not bucket.is_full}
