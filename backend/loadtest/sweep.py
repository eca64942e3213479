"""A sweep over rates: the runs of each, the knee among them, and both as a table."""

from collections.abc import Callable, Sequence
from statistics import fmean

import msgspec

from backend.loadtest.knee import KneeResult, Observed, Trial
from backend.loadtest.run_table import heading, targets_text
from backend.loadtest.steady import JUDGED_CLASS
from backend.loadtest.summary import Group, Summary
from backend.loadtest.table import ABSENT, Facts, Table, milliseconds, number, percent

HEADER = (
    "offered rps",
    "seeds",
    "achieved rps",
    "out tok/s",
    "TTFT p95 ms",
    "TPOT p95 ms",
    "ITL p99 ms",
    "in flight",
    "peak KV %",
    "hit rate %",
    "goodput rps",
    "attainment %",
    "interactive %",
    "95 % interval",
    "",
)


class SweepPoint(msgspec.Struct, frozen=True, kw_only=True):
    """One rate and the summary of each of its runs."""

    rate_rps: float
    summaries: list[Summary]

    def mean(self, figure: Callable[[Summary], float | None]) -> float | None:
        """Over the runs that have the figure; None where none has."""
        found = [value for each in self.summaries if (value := figure(each)) is not None]
        return fmean(found) if found else None


class Sweep(msgspec.Struct, frozen=True, kw_only=True):
    """All of a sweep."""

    points: list[SweepPoint]
    """By rate."""
    knee: KneeResult


def judged(summary: Summary) -> Group:
    """The requests whose attainment decides: the interactive ones, or all where there are none."""
    return next((group for group in summary.by_class if group.name == JUDGED_CLASS), summary.all)


def trial(summary: Summary) -> Trial:
    """A run as the search for the knee takes it."""
    return Trial(
        seed=summary.load.seed,
        attainment_share=judged(summary).goodput.attainment_share,
        goodput_rps=summary.all.goodput.goodput_rps,
        queue_grows=summary.queue_grows,
        refused=summary.refused,
    )


def sweep_facts(sweep: Sweep) -> Facts:
    """All that is shown of a sweep.

    Raises:
        IndexError: it has no run.
    """
    first = sweep.points[0].summaries[0]
    load = first.load
    observed = {each.rate_rps: each for each in sweep.knee.observed}
    return Facts(
        heading=heading(first.target),
        notices=_notices(sweep),
        lines=[
            ("workload", f"{load.workload}, {rates_text(sweep)}"),
            ("arrivals", arrivals_text(sweep)),
            ("sha256", load.workload_sha256),
            ("targets", targets_text(first.all.goodput.targets)),
            ("knee", knee_text(sweep.knee)),
        ],
        tables=[
            Table("", HEADER, [_row(each, observed.get(each.rate_rps)) for each in sweep.points])
        ],
    )


def arrivals_text(sweep: Sweep) -> str:
    """How requests arrived, whatever the rate."""
    first = sweep.points[0]
    own_rate = f" {first.rate_rps:g} requests per second"
    return first.summaries[0].load.arrivals.replace(own_rate, " each rate")


def rates_text(sweep: Sweep) -> str:
    """Which rates were run."""
    rates = [point.rate_rps for point in sweep.points]
    return f"{len(rates)} rates from {rates[0]:g} to {rates[-1]:g} rps"


def knee_text(knee: KneeResult) -> str:
    """Where the knee is, and how sure that is, in one sentence."""
    at = {each.rate_rps: each for each in knee.observed}
    if knee.knee_rps is None:
        least = min(at, default=None)
        return "none: nothing was run" if least is None else f"none: {_failed(at[least])}"
    passed = at[knee.knee_rps]
    words = f"{knee.knee_rps:g} rps ({_attained(passed)}, goodput {passed.goodput_rps:,.2f} rps)"
    if knee.failed_rps is None:
        return f"at least {words}: no rate failed"
    return f"{words}; {_failed(at[knee.failed_rps])}"


def _failed(observed: Observed) -> str:
    return f"{observed.rate_rps:g} rps failed: {observed.reason} ({_attained(observed)})"


def _attained(observed: Observed) -> str:
    count = len(observed.trials)
    share = f"attainment {percent(observed.attainment_share)} %"
    if observed.attainment_interval_share is None:
        return f"{share}, one seed"
    return f"{share}, 95 % interval {_interval(observed)} over {count} seeds"


def _interval(observed: Observed) -> str:
    if observed.attainment_interval_share is None:
        return ABSENT
    low, high = observed.attainment_interval_share
    return f"{low * 100:.1f} to {high * 100:.1f}"


def _row(point: SweepPoint, observed: Observed | None) -> Sequence[str]:
    mean = point.mean
    kv_peaks = [
        worker.kv_used_max_share for each in point.summaries for worker in each.fleet.workers
    ]
    verdict = "" if observed is None else "pass" if observed.passed else "fail"
    return (
        number(mean(lambda s: s.load.offered_rps), 2),
        f"{len(point.summaries)}",
        number(mean(lambda s: s.load.achieved_rps), 2),
        number(mean(lambda s: s.tokens.output_tokens_per_s), 0),
        milliseconds(mean(lambda s: s.all.ttft.p95_ms if s.all.ttft else None)),
        milliseconds(mean(lambda s: s.all.tpot.p95_ms if s.all.tpot else None)),
        milliseconds(mean(lambda s: s.all.itl.p99_ms if s.all.itl else None)),
        number(mean(lambda s: s.load.in_flight_mean), 1),
        percent(max(kv_peaks, default=None)),
        percent(mean(lambda s: s.hit_rate.window_share)),
        number(mean(lambda s: s.all.goodput.goodput_rps), 2),
        percent(mean(lambda s: s.all.goodput.attainment_share)),
        percent(mean(lambda s: judged(s).goodput.attainment_share)),
        ABSENT if observed is None else _interval(observed),
        verdict,
    )


def _notices(sweep: Sweep) -> list[str]:
    """Each warning and refusal once, with the rates it is of."""
    rates: dict[str, list[str]] = {}
    for point in sweep.points:
        for summary in point.summaries:
            for notice in [f"REFUSED: {why}" for why in summary.refusals] + summary.warnings:
                at = rates.setdefault(notice, [])
                if (rate := f"{point.rate_rps:g}") not in at:
                    at.append(rate)
    found = [f"{notice} (at {', '.join(at)} rps)" for notice, at in rates.items()]
    knee = sweep.knee
    if knee.passed_above_a_fail_rps:
        above = ", ".join(f"{rate:g}" for rate in knee.passed_above_a_fail_rps)
        found.append(f"The curve is not monotone: {above} rps passed above a rate that failed.")
    if knee.limited_by_generator:
        found.append("The knee is the load generator's, not the target's: its runs were refused.")
    return found
