"""Send times: their rate, their clumps, and that whole cycles keep the mean."""

import random
from collections.abc import Iterator
from itertools import islice, pairwise, takewhile
from statistics import fmean, pstdev

import pytest

from backend.loadtest.arrivals import (
    Bursts,
    GammaGaps,
    OnOff,
    parse_bursts,
    poisson_times_ms,
    spread_in_buckets,
)
from backend.loadtest.workload_error import WorkloadError


def chance(seed: int) -> random.Random:
    return random.Random(seed)  # noqa: S311 - lengths and times, no secrets


def until(times: Iterator[float], end_ms: float) -> list[float]:
    return list(takewhile(lambda at: at < end_ms, times))


def gaps(times: list[float]) -> list[float]:
    return [later - earlier for earlier, later in pairwise(times)]


def test_poisson_gaps_vary_as_much_as_they_are_long() -> None:
    times = list(islice(poisson_times_ms(8, chance(1)), 20_000))
    assert fmean(gaps(times)) == pytest.approx(125, rel=0.036)
    assert pstdev(gaps(times)) / fmean(gaps(times)) == pytest.approx(1, abs=0.05)


def test_another_rate_is_the_same_pattern_faster() -> None:
    slow = list(islice(poisson_times_ms(1, chance(1)), 50))
    fast = list(islice(poisson_times_ms(4, chance(1)), 50))
    assert fast == pytest.approx([at / 4 for at in slow])


@pytest.mark.parametrize("cv", [0.2, 1.0, 3.0])
def test_gamma_gaps_have_the_coefficient_of_variation_asked_for(cv: float) -> None:
    times = list(islice(GammaGaps(cv).times_ms(10, chance(2)), 40_000))
    assert pstdev(gaps(times)) / fmean(gaps(times)) == pytest.approx(cv, rel=0.1)


def test_clumps_do_not_raise_the_rate_of_a_short_run() -> None:
    # Counted from an arrival, a run of CV 4 has (16 - 1) / 2 = 7.5 requests more than its 20.
    counts = [len(until(GammaGaps(4).times_ms(2, chance(n)), 10_000)) for n in range(3_000)]
    # One count's standard deviation is near 4 * sqrt(20) = 18: five standard errors are 1.7.
    assert fmean(counts) == pytest.approx(20, abs=1.7)


def test_on_and_off_have_their_own_rates_and_the_mean_is_kept() -> None:
    # 10 a second: 40 for 10 s of each 60 s, so 400 of a cycle's 600, and 4 a second for 50 s.
    times = until(OnOff(4, 10, 50).times_ms(10, chance(1)), 100 * 60_000)
    burst = sum(at % 60_000 >= 50_000 for at in times)
    assert burst == pytest.approx(40_000, abs=1_000)
    assert len(times) - burst == pytest.approx(20_000, abs=710)


def test_a_burst_may_be_all_there_is() -> None:
    times = until(OnOff(6, 10, 50).times_ms(1, chance(1)), 20 * 60_000)
    assert len(times) > 1_000
    assert all(at % 60_000 >= 50_000 - 1e-6 for at in times)


def test_a_factor_of_1_is_poisson() -> None:
    poisson = list(islice(poisson_times_ms(5, chance(4)), 500))
    assert list(islice(OnOff(1, 3, 7).times_ms(5, chance(4)), 500)) == pytest.approx(poisson)


def test_rounded_times_are_spread_in_their_own_bucket_and_order() -> None:
    times = [0.0, 0.0, 0.0, 2_999.0, 3_000.0, 3_001.0, 9_000.0]
    spread = spread_in_buckets(times, 3_000, chance(1))
    assert [at // 3_000 for at in spread] == [0, 0, 0, 1, 1, 1, 3]
    assert spread == sorted(set(spread))
    assert spread_in_buckets([], 3_000, chance(1)) == []


@pytest.mark.parametrize(
    ("text", "bursts"), [("gamma:2.5", GammaGaps(2.5)), ("onoff:4,10,50", OnOff(4, 10, 50))]
)
def test_bursts_are_read_as_they_are_written(text: str, bursts: Bursts) -> None:
    assert parse_bursts(text) == bursts
    assert str(bursts) == text


def test_a_burst_of_more_than_the_mean_says_what_fits() -> None:
    with pytest.raises(WorkloadError, match="at most 6 times fit"):
        parse_bursts("onoff:7,10,50")


@pytest.mark.parametrize(
    "text", ["", "gamma", "gamma:0", "gamma:99", "onoff:2,0,5", "onoff:.5,1,1"]
)
def test_nonsense_is_refused(text: str) -> None:
    with pytest.raises(WorkloadError):
        parse_bursts(text)
