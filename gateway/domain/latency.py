"""How long first tokens and tokens took: histograms that can be added up, and quantiles. Pure.

A histogram counts durations in buckets whose bounds each are 10 % above the last, so whatever is
said of a duration is at most 5 % off. It covers 0.1 ms to an hour; what lies outside counts at the
nearer end. Histograms of several gateways, workers or slices of time are added bucket by bucket.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import ceil, log
from typing import NamedTuple

SLICE_MS = 10_000
"""A slice of time has the durations of the requests that ended in it."""
MINUTE_SLICES = 6
FIVE_MINUTES_SLICES = 30
SLICES_KEPT = FIVE_MINUTES_SLICES + 1
"""The whole ones of five minutes, and the one that is not over."""
GROWTH = 1.1
LEAST_US = 100
BUCKETS = 184
"""The last one ends above an hour."""
_PER_LOG = 1 / log(GROWTH)
_FIRST = log(LEAST_US) * _PER_LOG

Histogram = dict[int, int]
"""How many durations there were, by bucket; without those that had none."""


class Measure(StrEnum):
    """What was measured of a request."""

    TTFT = "ttft"
    """From its arrival to its first token."""
    TPOT = "tpot"
    """From its first token to its last, a token."""


class OfWorker(NamedTuple):
    """What one worker, or one hosted provider, served."""

    measure: str
    worker: str


class OfModel(NamedTuple):
    """What requests of one class by one model met, whoever served them."""

    measure: str
    model: str
    request_class: str


Series = OfWorker | OfModel
Slice = dict[Series, Histogram]
"""What one slice of time has, by what it is of."""


@dataclass(frozen=True)
class Figure:
    """The 95th percentile of what was measured. `p95_ms` is None where there was nothing."""

    count: int
    p95_ms: float | None


@dataclass(frozen=True)
class Figures:
    """Of the last minute and the last five: to a slice, which is not over yet."""

    minute: Figure
    five_minutes: Figure


def slice_of(at_ms: int) -> int:
    """The number of the slice that an instant (Unix ms) lies in."""
    return at_ms // SLICE_MS


def bucket_of(duration_us: int) -> int:
    """Where a duration counts."""
    if duration_us <= LEAST_US:
        return 0
    return min(BUCKETS - 1, int(log(duration_us) * _PER_LOG - _FIRST))


def added(histograms: Iterable[Mapping[int, int]]) -> Histogram:
    """All of them as one."""
    total: Histogram = {}
    for histogram in histograms:
        for bucket, count in histogram.items():
            total[bucket] = total.get(bucket, 0) + count
    return total


def quantile_us(histogram: Mapping[int, int], permille: int) -> float | None:
    """The duration that so many of a thousand do not pass (nearest rank), 5 % off at most; None of
    nothing."""
    rank = ceil(sum(histogram.values()) * permille / 1000)
    if rank == 0:
        return None
    for bucket in sorted(histogram):
        rank -= histogram[bucket]
        if rank <= 0:
            break
    # Between the bounds in the sense of ratios: as far from one as from the other.
    return float(LEAST_US * GROWTH ** (bucket + 0.5))


def figure_of(histogram: Mapping[int, int]) -> Figure:
    """Its count and 95th percentile, in milliseconds of four digits."""
    p95_us = quantile_us(histogram, 950)
    p95_ms = None if p95_us is None else float(f"{p95_us / 1000:.4g}")
    return Figure(sum(histogram.values()), p95_ms)


NOTHING = Figures(Figure(0, None), Figure(0, None))
"""Of what nothing was measured."""


@dataclass(frozen=True)
class Targets:
    """What the 95th percentile of one class should not pass."""

    ttft_ms: int
    tpot_ms: int


def figures_of(
    slices: Mapping[int, Mapping[Series, Histogram]], now_ms: int
) -> dict[Series, Figures]:
    """By what they are of. The slice that is not over counts beside the whole ones, so a minute is
    one of 60 to 70 s."""
    present = slice_of(now_ms)
    minute: dict[Series, list[Histogram]] = {}
    five: dict[Series, list[Histogram]] = {}
    for number, measured in slices.items():
        age = present - number
        if age > FIVE_MINUTES_SLICES:
            continue
        for series, histogram in measured.items():
            five.setdefault(series, []).append(histogram)
            if age <= MINUTE_SLICES:
                minute.setdefault(series, []).append(histogram)
    return {
        series: Figures(figure_of(added(minute.get(series, ()))), figure_of(added(histograms)))
        for series, histograms in five.items()
    }
