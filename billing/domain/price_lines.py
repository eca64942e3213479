"""What holds when, as instants in order and what begins at each: a look-up is one bisection."""

from bisect import bisect_right
from collections.abc import Iterable
from typing import Generic, TypeVar

T = TypeVar("T")


class Timeline(Generic[T]):
    """What holds from each instant on until the next; None: nothing. It does not change."""

    __slots__ = ("begins_ms", "values")

    def __init__(self, changes: Iterable[tuple[int, T | None]]) -> None:
        """Raises ValueError where two changes are at one instant: which of them holds would be
        chance."""
        ordered = sorted(changes, key=lambda change: change[0])
        self.begins_ms = [begins_ms for begins_ms, _ in ordered]
        self.values = [value for _, value in ordered]
        if len(set(self.begins_ms)) < len(self.begins_ms):
            raise ValueError("two begin at the same instant")

    def at(self, at_ms: int) -> T | None:
        """What holds at that instant (Unix milliseconds)."""
        begun = bisect_right(self.begins_ms, at_ms)
        return self.values[begun - 1] if begun else None


def layered(first: Timeline[T], behind: Timeline[T]) -> Timeline[T]:
    """`first`, and where nothing of it holds, `behind`."""
    changes: list[tuple[int, T | None]] = []
    for at_ms in sorted({*first.begins_ms, *behind.begins_ms}):
        own = first.at(at_ms)
        changes.append((at_ms, behind.at(at_ms) if own is None else own))
    return Timeline(changes)
