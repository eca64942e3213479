"""Whether the load generator itself was the bottleneck: then what it measured is not the target's.

A lag is bounded twice. In real time: a generator is no faster where the target's clock is. And in
the target's: there a lag is as many times as long as its clock is fast, and all of it goes into the
latencies.
"""

from math import inf

from backend.loadtest.measure import GoodputTargets
from backend.loadtest.percentiles import nearest_rank
from backend.loadtest.run import Run
from backend.loadtest.steady import Window

SEND_LAG_P99_MS_MAX = 10.0
LOOP_LAG_P99_MS_MAX = 10.0
TARGET_LAG_SHARE_MAX = 0.05
"""Of the TTFT target, for a lag in the target's time: 40 ms of 800."""
CPU_SHARE_MAX = 0.8
OWN_ERRORS = {"EMFILE", "ENFILE", "EADDRNOTAVAIL", "ENOBUFS", "ENOMEM"}
"""Why a connection could not be had that no target is to blame for."""


def send_lags_ms(run: Run) -> list[float]:
    """How late the generator was with each request that went out, in real milliseconds, sorted.
    A target that was slow to take a connection is no lateness of the generator's."""
    speed = run.target.clock_speed
    stopped_ms = inf if run.stopped_at_ms is None else run.stopped_at_ms
    return sorted(
        (outcome.sent_at_ms - outcome.connect_wait_ms - outcome.planned.send_at_ms) / speed
        for outcome in run.outcomes
        if outcome.end != "unreachable" and outcome.planned.send_at_ms <= stopped_ms
    )


def verdict(
    run: Run, targets: GoodputTargets | None = None, window: Window | None = None
) -> str | None:
    """Why the run is refused, in one line; None where it stands. Without a window the workers are
    judged by the whole run."""
    speed = run.target.clock_speed
    at_most_ms = TARGET_LAG_SHARE_MAX * (targets or GoodputTargets()).ttft_ms
    if own := sorted({outcome.code or "" for outcome in run.outcomes} & OWN_ERRORS):
        return f"the load generator could open no more connections ({', '.join(own)})"
    lags = send_lags_ms(run)
    for lag, limit_ms, what in (
        (nearest_rank(lags, 99) if lags else 0.0, SEND_LAG_P99_MS_MAX, "the requests went out"),
        (run.generator_loop_lag_p99_ms, LOOP_LAG_P99_MS_MAX, "its readings came"),
    ):
        if lag > limit_ms:
            return _refused(f"1 % of {what} over {lag:.1f} ms late", limit_ms)
        if lag * speed > at_most_ms:
            return _refused_in_its_time(
                f"the load generator was the bottleneck: 1 % of {what}", lag, speed, at_most_ms
            )
    if (share := run.generator_cpu_share) > CPU_SHARE_MAX:
        return (
            f"the load generator was the bottleneck: it used {share:.0%} of a core"
            f" (at most {CPU_SHARE_MAX:.0%})"
        )
    for worker, lag in sorted(step_lags_p95_ms(run, window).items()):
        if lag * speed > at_most_ms:
            what = f"the simulated worker {worker} was the bottleneck, not its model: steps ended"
            return _refused_in_its_time(what, lag, speed, at_most_ms)
    return None


def step_lags_p95_ms(run: Run, window: Window | None = None) -> dict[str, float]:
    """How late the steps of each simulated worker ended, in real milliseconds: what one in twenty
    of its own readings exceeds."""
    read: dict[str, list[float]] = {}
    for sample in run.samples:
        if sample.step_lag_ms is not None and (window is None or window.holds(sample.at_ms)):
            read.setdefault(sample.worker, []).append(sample.step_lag_ms)
    return {worker: nearest_rank(sorted(lags), 95) for worker, lags in read.items()}


def _refused_in_its_time(what: str, lag_ms: float, speed: float, at_most_ms: float) -> str:
    if speed == 1:
        return f"{what} over {lag_ms:.1f} ms late (at most {at_most_ms:g} ms)"
    return (
        f"{what} over {lag_ms:.1f} ms late, {lag_ms * speed:.0f} ms of a clock at {speed:g} times"
        f" the speed (at most {at_most_ms:g} ms): give the workers a lower --speed"
    )


def _refused(what: str, at_most_ms: float) -> str:
    return f"the load generator was the bottleneck: {what} (at most {at_most_ms:g} ms)"
