"""Several seeds at one rate are one figure."""

from dataclasses import replace

import pytest
from made_up_runs import outcome, run_of

from backend.loadtest.seeds_together import seeds_together, together_line
from backend.loadtest.summarise import summarise
from backend.loadtest.summary import Summary


def of_seed(seed: int, good: int, *, batch: int = 0) -> Summary:
    """Ten interactive requests, so many of them good, and batch that is all bad."""
    made = [outcome(at, send_at_ms=at, tpot_ms=10 if at < good else 90) for at in range(10)]
    made += [outcome(at, tpot_ms=90, traffic_class="batch") for at in range(batch)]
    run = run_of(made)
    run.workload = replace(run.workload, seed=seed)
    return summarise(run)


def test_the_mean_has_an_interval_as_in_a_sweep() -> None:
    """Student's t over the seeds: of 0.8, 0.9 and 1.0 it is 0.9 and 4.303 x 0.1 / sqrt 3 around."""
    found = seeds_together([of_seed(3, 8), of_seed(4, 9), of_seed(5, 10)])
    assert found is not None
    assert found.seeds == [3, 4, 5]
    assert found.attainment_share == pytest.approx(0.9)
    assert found.attainment_interval_share == pytest.approx((0.6516, 1.0), abs=1e-3)
    assert found.goodput_rps == pytest.approx(0.9)
    assert together_line(found).startswith(
        "3 seeds together: attainment 90.0 % of interactive requests, 95 % interval 65.2 to 100.0; "
        "90.0 % of all; goodput 0.90 rps"
    )


def test_the_interactive_requests_decide() -> None:
    """Batch is in the share of all."""
    found = seeds_together([of_seed(0, 10, batch=10), of_seed(1, 10, batch=10)])
    assert found is not None
    assert (found.attainment_share, found.all_attainment_share) == (1.0, 0.5)


def test_one_run_is_no_mean_and_one_that_was_interrupted_is_left_out() -> None:
    """It is of a shorter schedule."""
    run = run_of([outcome(0)])
    run.stopped_at_ms = 9_000.0
    assert seeds_together([of_seed(0, 9)]) is None
    assert seeds_together([of_seed(0, 9), summarise(run)]) is None
