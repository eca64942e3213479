"""Whether the load generator itself was the bottleneck: then what it measured is not the target's.

All limits are of real time: a generator is no faster where the target's clock is.
"""

from math import inf

from backend.loadtest.percentiles import nearest_rank
from backend.loadtest.run import Run

SEND_LAG_P99_MS_MAX = 10.0
LOOP_LAG_P99_MS_MAX = 10.0
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


def verdict(run: Run) -> str | None:
    """Why the run is refused, in one line; None where it stands."""
    if own := sorted({outcome.code or "" for outcome in run.outcomes} & OWN_ERRORS):
        return f"the load generator could open no more connections ({', '.join(own)})"
    lags = send_lags_ms(run)
    if lags and (lag := nearest_rank(lags, 99)) > SEND_LAG_P99_MS_MAX:
        return _refused(f"1 % of the requests went out over {lag:.1f} ms late", SEND_LAG_P99_MS_MAX)
    if (lag := run.generator_loop_lag_p99_ms) > LOOP_LAG_P99_MS_MAX:
        return _refused(f"1 % of its readings came over {lag:.1f} ms late", LOOP_LAG_P99_MS_MAX)
    if (share := run.generator_cpu_share) > CPU_SHARE_MAX:
        return (
            f"the load generator was the bottleneck: it used {share:.0%} of a core"
            f" (at most {CPU_SHARE_MAX:.0%})"
        )
    return None


def _refused(what: str, at_most_ms: float) -> str:
    return f"the load generator was the bottleneck: {what} (at most {at_most_ms:g} ms)"
