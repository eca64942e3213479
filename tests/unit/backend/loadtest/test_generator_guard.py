"""When the generator was the bottleneck, the run is refused."""

from dataclasses import replace

import pytest
from made_up_runs import outcome, run_of

from backend.loadtest.generator_guard import send_lags_ms, verdict
from backend.loadtest.measure import GoodputTargets
from backend.loadtest.run import Run, WorkerSample
from backend.loadtest.steady import Window


def lagging(*lags_ms: float, speed: float = 1.0) -> Run:
    run = run_of([outcome(n, send_at_ms=n * 10.0, lag_ms=lag) for n, lag in enumerate(lags_ms)])
    run.target = replace(run.target, clock_speed=speed)
    return run


def test_a_run_within_its_limits_stands() -> None:
    """One late request of a hundred is no bottleneck."""
    assert verdict(lagging(*[9.9] * 99, 500.0)) is None


def test_late_sends_refuse_it() -> None:
    """Two of a hundred are."""
    said = verdict(lagging(*[0.1] * 98, 12.5, 500.0))
    assert said is not None
    assert "12.5 ms late (at most 10 ms)" in said
    assert "\n" not in said


@pytest.mark.parametrize(("speed", "real_ms"), [(1.0, 10.0), (4.0, 10.0), (20.0, 2.0)])
def test_lag_is_bounded_in_real_time_and_in_the_targets(speed: float, real_ms: float) -> None:
    """10 ms, and a twentieth of the TTFT target, which a fast clock comes to sooner; sends and
    readings alike."""
    assert send_lags_ms(lagging(90.0, speed=10.0)) == [9.0]
    assert verdict(lagging(real_ms * speed, speed=speed)) is None
    late = verdict(lagging(real_ms * speed * 1.05, speed=speed))
    assert late is not None
    assert ("--speed" in late) is (speed == 20)
    run = lagging(0.0, speed=speed)
    run.generator_loop_lag_p99_ms = real_ms
    assert verdict(run) is None
    run.generator_loop_lag_p99_ms = real_ms * 1.05
    assert "readings" in str(verdict(run))


def test_a_tighter_target_bounds_lag_tighter() -> None:
    """Five milliseconds are a twentieth of a hundred."""
    assert verdict(lagging(6.0)) is None
    assert "at most 5 ms" in str(verdict(lagging(6.0), GoodputTargets(ttft_ms=100)))


def test_a_worker_that_falls_behind_its_own_clock_refuses_it() -> None:
    """By what one in twenty of its readings exceeds, within the window."""

    def sample(at_ms: float, lag_ms: float | None) -> WorkerSample:
        return WorkerSample(at_ms, "w", 1, 0, 0, 0, 100, lag_ms)

    run = lagging(0.0, speed=20.0)
    run.samples = [sample(at, 1.9) for at in range(95)] + [sample(at, 9.0) for at in range(95, 100)]
    run.samples.append(sample(50, None))
    assert verdict(run) is None
    run.samples.append(sample(100, 9.0))
    said = verdict(run)
    assert said is not None
    assert "worker w was the bottleneck, not its model" in said
    assert "9.0 ms late, 180 ms of a clock at 20 times the speed (at most 40 ms)" in said
    assert "--speed" in said
    assert verdict(run, window=Window(start_ms=0, end_ms=95)) is None


def test_a_busy_generator_refuses_it() -> None:
    """Over four fifths of a core."""
    run = lagging(0.0)
    run.generator_cpu_share = 0.8
    assert verdict(run) is None
    run.generator_cpu_share = 0.81
    assert verdict(run) == (
        "the load generator was the bottleneck: it used 81% of a core (at most 80%)"
    )


def test_late_readings_refuse_it() -> None:
    """A token that is read late counts as a late token."""
    run = lagging(0.0)
    run.generator_loop_lag_p99_ms = 10.0
    assert verdict(run) is None
    run.generator_loop_lag_p99_ms = 10.1
    assert "readings came over 10.1 ms late" in str(verdict(run))


def test_what_never_went_out_has_no_lag() -> None:
    """Neither without a connection, nor where the run was ended before its time."""
    run = run_of(
        [
            outcome(0, send_at_ms=0.0, lag_ms=2.0),
            outcome(1, send_at_ms=10.0, lag_ms=900.0, ttft_ms=None, end="unreachable"),
            outcome(2, send_at_ms=20.0, ttft_ms=None, end="timeout"),
        ]
    )
    run.stopped_at_ms = 15.0
    assert send_lags_ms(run) == [2.0]


def test_a_target_slow_to_take_a_connection_is_no_lag() -> None:
    """The request went out late, and its latency says so; the generator was in time."""
    run = lagging(1000.0)
    run.outcomes[0].connect_wait_ms = 995.0
    assert send_lags_ms(run) == [5.0]
    assert verdict(run) is None


def test_a_generator_without_sockets_refuses_it() -> None:
    """The target refused nothing."""
    run = run_of([outcome(0, ttft_ms=None, end="unreachable")])
    run.outcomes[0].code = "ECONNREFUSED"
    assert verdict(run) is None
    run.outcomes[0].code = "EMFILE"
    assert verdict(run) == "the load generator could open no more connections (EMFILE)"


def test_nothing_sent_is_no_reason() -> None:
    """A run without requests is refused for other reasons than this."""
    assert verdict(run_of([])) is None
