"""Prices that a gateway has heard of and not read: from when on its price book is not the newest.

A price that follows another begins LEAD_MS after it is written at the earliest. Who looked for
prices less than that ago knows every one that holds by now, or knows of it.
"""

from collections.abc import Iterable
from typing import NamedTuple

LEAD_MS = 2_000
"""Gateways see a new price within a second; as much again for their clocks."""


class WrittenPrice(NamedTuple):
    """A price that was written: the number of its row's change, and when it begins (Unix ms)."""

    changed: int
    begins_ms: int


class PriceNews:
    """What was heard of and is not read yet. Instants `_s` are of one monotonic clock."""

    def __init__(self) -> None:
        self._heard_s: dict[WrittenPrice, float] = {}
        self._void: set[WrittenPrice] = set()

    def hear(self, prices: Iterable[WrittenPrice], *, seen: int, at_s: float) -> None:
        """These were written before `at_s`; all changes up to `seen` are read."""
        written = set(prices)
        self._void &= written
        for price in written - self._void:
            if price.changed > seen:
                self._heard_s.setdefault(price, at_s)

    def read(self, *, seen: int, began_s: float) -> None:
        """All changes up to `seen` are read, by a look that began at `began_s`. What was heard of
        before and is not there is gone for good: Postgres goes on from an older backup."""
        for price, heard_s in list(self._heard_s.items()):
            if price.changed <= seen:
                del self._heard_s[price]
            elif heard_s < began_s:
                del self._heard_s[price]
                self._void.add(price)

    def has_begun(self, at_ms: int) -> bool:
        """Whether any of it holds for a request that arrived then (Unix ms)."""
        return any(price.begins_ms <= at_ms for price in self._heard_s)
