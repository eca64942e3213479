"""When the generator was the bottleneck, the run is refused."""

from dataclasses import replace

from made_up_runs import outcome, run_of

from backend.loadtest.generator_guard import send_lags_ms, verdict
from backend.loadtest.run import Run


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


def test_lag_is_of_real_time() -> None:
    """On a clock of tenfold speed 90 ms of the target's are 9 real ones, and 110 are 11."""
    assert send_lags_ms(lagging(90.0, speed=10.0)) == [9.0]
    assert verdict(lagging(90.0, speed=10.0)) is None
    assert verdict(lagging(110.0, speed=10.0)) is not None


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
