"""Histograms of durations: 5 % off at most in what is said of them, and adding loses nothing."""

import random
from math import ceil

import pytest

from gateway.domain.latency import (
    BUCKETS,
    NOTHING,
    SLICE_MS,
    Figure,
    Histogram,
    OfWorker,
    Series,
    added,
    bucket_of,
    figure_of,
    figures_of,
    quantile_us,
    slice_of,
)

HOUR_US = 3_600_000_000
SERIES: Series = OfWorker("ttft", "w")


def histogram_of(durations_us: list[int]) -> Histogram:
    """Each of them counted."""
    return added([{bucket_of(each): 1} for each in durations_us])


@pytest.mark.parametrize("seed", range(5))
def test_a_quantile_is_five_percent_off_at_most(seed: int) -> None:
    """Of any durations from 0.1 ms to an hour, against the exact nearest rank."""
    chosen = random.Random(seed)  # noqa: S311 - a seed
    durations = [round(100 * 10 ** chosen.uniform(0, 7.55)) for _ in range(997)]
    histogram = histogram_of(durations)
    for permille in (1, 500, 950, 990, 1000):
        exact = sorted(durations)[ceil(len(durations) * permille / 1000) - 1]
        found = quantile_us(histogram, permille)
        assert found is not None
        assert abs(found - exact) <= 0.05 * exact


def test_every_duration_has_a_bucket() -> None:
    """What is shorter or longer than any counts at the end that is nearer; an hour is inside."""
    assert bucket_of(0) == bucket_of(100) == 0
    assert bucket_of(HOUR_US) <= BUCKETS - 1 == bucket_of(100 * HOUR_US)
    middle = quantile_us({bucket_of(HOUR_US): 1}, 950)
    assert middle is not None
    assert abs(middle - HOUR_US) <= 0.05 * HOUR_US


def test_added_histograms_are_the_histogram_of_all() -> None:
    """However they are split."""
    durations = [17 * each * each + 100 for each in range(300)]
    parts = [histogram_of(durations[start::3]) for start in range(3)]
    assert added(parts) == histogram_of(durations)
    assert added([]) == {}


def test_of_nothing_there_is_no_figure() -> None:
    """Not 0, which would be a very good one."""
    assert figure_of({}) == Figure(count=0, p95_ms=None)
    assert NOTHING.minute.p95_ms is None


def test_the_95th_of_a_hundred_is_not_the_slowest() -> None:
    """Five of a hundred may be slow; six may not."""
    quick, slow = bucket_of(200_000), bucket_of(9_000_000)
    assert (figure_of({quick: 95, slow: 5}).p95_ms or 0) < 220
    assert (figure_of({quick: 94, slow: 6}).p95_ms or 0) > 8_000


def test_a_minute_and_five_minutes_go_back_so_far() -> None:
    """To the beginning of a slice; the one that is not over counts too."""
    now_ms = 1_800_000_005_000
    present = slice_of(now_ms)
    slices = {present - age: {SERIES: {bucket_of(1_000): 1}} for age in range(40)}
    (figures,) = figures_of(slices, now_ms).values()
    assert (figures.minute.count, figures.five_minutes.count) == (7, 31)
    assert slice_of(now_ms + SLICE_MS) == present + 1
    old = {present - 7: {SERIES: {bucket_of(1_000): 4}}}
    assert figures_of(old, now_ms)[SERIES].minute == Figure(0, None)
    assert figures_of({present - 31: {SERIES: {0: 4}}}, now_ms) == {}
