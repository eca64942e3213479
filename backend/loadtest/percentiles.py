"""Percentiles by nearest rank: each is a value that was measured, none is interpolated."""

from collections.abc import Iterable, Sequence

import msgspec

CDF_POINTS = 200


class Percentiles(msgspec.Struct, frozen=True, kw_only=True):
    """How one measure is distributed. Milliseconds, but for `count`."""

    count: int
    mean_ms: float
    p50_ms: float
    p95_ms: float
    p99_ms: float
    max_ms: float


def nearest_rank(ordered: Sequence[float], percent: int) -> float:
    """The smallest of the sorted values that at least `percent` in a hundred do not exceed.

    Raises:
        IndexError: there is no value.
    """
    rank = -(-percent * len(ordered) // 100)
    return ordered[max(rank, 1) - 1]


def percentiles(values: Iterable[float]) -> Percentiles | None:
    """Of these values in milliseconds; None where there is none."""
    ordered = sorted(values)
    return ordered_percentiles(ordered)


def ordered_percentiles(ordered: Sequence[float]) -> Percentiles | None:
    """Of values that are sorted already; None where there is none."""
    if not ordered:
        return None
    return Percentiles(
        count=len(ordered),
        # Rounding of the sum must not carry the mean outside what it is the mean of.
        mean_ms=min(max(sum(ordered) / len(ordered), ordered[0]), ordered[-1]),
        p50_ms=nearest_rank(ordered, 50),
        p95_ms=nearest_rank(ordered, 95),
        p99_ms=nearest_rank(ordered, 99),
        max_ms=ordered[-1],
    )


def distribution(ordered: Sequence[float], points: int = CDF_POINTS) -> list[float]:
    """The sorted values at `points` equal steps of the share that does not exceed them, the last
    being the greatest: enough to draw the distribution without keeping every value."""
    if not ordered:
        return []
    count = len(ordered)
    return [ordered[-(-step * count // points) - 1] for step in range(1, points + 1)]
