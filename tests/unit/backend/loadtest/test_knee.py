"""The search for the knee on made-up response curves."""

from collections.abc import Callable

import pytest

from backend.loadtest.knee import Knee, KneeResult, Trial, confidence_interval

Curve = Callable[[float], float]


def search(knee: Knee, attainment: Curve, **trial: bool) -> tuple[KneeResult, list[float]]:
    """Run a search to its end; the rates it asked for, in order."""
    asked: list[float] = []
    while (rate := knee.next_rate()) is not None:
        assert len(asked) < 40, "the search does not end"
        asked.append(rate)
        share = attainment(rate)
        knee.observe(
            rate,
            [
                Trial(seed=seed, attainment_share=share, goodput_rps=rate * share, **trial)
                for seed in range(knee.seeds)
            ],
        )
    return knee.result, asked


def cliff(at_rps: float) -> Curve:
    """All good up to there, none beyond."""
    return lambda rate: 1.0 if rate <= at_rps else 0.0


@pytest.mark.parametrize("at_rps", [0.31, 1.0, 6.7, 7.01, 55.0])
def test_the_knee_is_found_to_five_per_cent(at_rps: float) -> None:
    """From any start, upward and downward."""
    result, _ = search(Knee(4.0), cliff(at_rps))
    assert result.done
    assert result.knee_rps is not None
    assert result.failed_rps is not None
    assert result.knee_rps <= at_rps < result.failed_rps
    assert result.failed_rps - result.knee_rps <= 0.05 * result.knee_rps


def test_it_doubles_up_then_bisects() -> None:
    """4 and 8 bracket 6.7; each middle halves what is left."""
    assert search(Knee(4.0), cliff(6.7))[1] == [4, 8, 6, 7, 6.5, 6.75]


def test_it_halves_down_then_bisects() -> None:
    """From a start that fails."""
    assert search(Knee(16.0), cliff(6.7))[1][:4] == [16, 8, 4, 6]


def test_replica_models_curve_has_its_knee_between_six_and_a_half_and_seven() -> None:
    """Replica-model B4: 0.970 at 6.5 and 0.904 at 7."""
    table = {4.0: 0.994, 6.0: 0.981, 6.5: 0.970, 6.75: 0.940, 7.0: 0.904, 8.0: 0.289}
    result, _ = search(Knee(4.0), table.__getitem__)
    assert (result.knee_rps, result.failed_rps) == (6.5, 6.75)


def test_a_target_that_never_passes_has_no_knee() -> None:
    """The search stops at its least rate."""
    result, asked = search(Knee(4.0, min_rps=0.5), cliff(0))
    assert asked == [4, 2, 1, 0.5]
    assert result.done
    assert result.knee_rps is None
    assert result.failed_rps == 0.5


def test_a_target_that_never_fails_has_a_least_knee() -> None:
    """The search stops at its greatest rate, which need not be a doubling."""
    result, asked = search(Knee(4.0, max_rps=10), cliff(1_000))
    assert asked == [4, 8, 10]
    assert result.done
    assert (result.knee_rps, result.failed_rps) == (10, None)


def test_a_pass_above_a_fail_is_named_and_not_the_knee() -> None:
    """A curve that is not monotone: the knee stays under the smallest fail."""
    knee = Knee(4.0, seeds=1)
    for rate, share in ((4.0, 1.0), (6.0, 0.5), (7.0, 0.99), (8.0, 0.1)):
        knee.observe(rate, [Trial(seed=1, attainment_share=share, goodput_rps=rate)])
    assert knee.next_rate() == 5
    assert knee.result.knee_rps == 4
    assert knee.result.failed_rps == 6
    assert knee.result.passed_above_a_fail_rps == [7]
    assert not knee.result.done


def test_a_growing_queue_fails_a_rate_whose_attainment_passes() -> None:
    """Good so far, but not for long."""
    result, _ = search(Knee(4.0, min_rps=2), cliff(100), queue_grows=True)
    assert result.knee_rps is None
    assert {observed.reason for observed in result.observed} == {"the queue grows"}


def test_one_seed_of_three_whose_queue_grows_is_chance() -> None:
    """Two are the rate."""
    trials = [
        Trial(seed=seed, attainment_share=1.0, goodput_rps=4, queue_grows=seed == 1)
        for seed in (1, 2, 3)
    ]
    assert Knee(4.0).observe(4.0, trials).passed
    trials[1] = Trial(seed=2, attainment_share=1.0, goodput_rps=4, queue_grows=True)
    assert not Knee(4.0).observe(4.0, trials).passed


def test_a_refused_run_says_that_the_generator_is_the_limit() -> None:
    """Only where the target itself did not fail."""
    knee = Knee(4.0, seeds=2)
    good = Trial(seed=1, attainment_share=1.0, goodput_rps=8)
    knee.observe(8.0, [good, Trial(seed=2, attainment_share=1.0, goodput_rps=8, refused=True)])
    assert knee.result.limited_by_generator
    bad = Trial(seed=1, attainment_share=0.2, goodput_rps=2)
    knee.observe(8.0, [bad, Trial(seed=2, attainment_share=1.0, goodput_rps=8, refused=True)])
    assert not knee.result.limited_by_generator


def test_a_rate_is_judged_by_the_mean_of_its_seeds() -> None:
    """0.94, 0.95 and 0.97: mean 0.9533, ± 4.303 x 0.01528 / sqrt(3) = 0.0379."""
    shares = (0.94, 0.95, 0.97)
    trials = [
        Trial(seed=seed, attainment_share=share, goodput_rps=share)
        for seed, share in enumerate(shares)
    ]
    observed = Knee(1.0).observe(1.0, trials)
    assert observed.passed
    assert observed.attainment_share == pytest.approx(0.95333, abs=1e-5)
    assert observed.attainment_interval_share == pytest.approx((0.91539, 0.99128), abs=1e-4)


def test_an_interval_needs_two_seeds_and_stays_a_share() -> None:
    """One seed says nothing of chance."""
    assert confidence_interval([0.9]) is None
    assert confidence_interval([0.9, 1.0]) == pytest.approx((0.3147, 1.0), abs=1e-4)


def test_bounds_must_hold_the_start() -> None:
    """A search that could not begin is refused."""
    with pytest.raises(ValueError, match="min_rps"):
        Knee(4.0, min_rps=5)
