"""Runs at one rate, at several, or wherever the search for the knee leads; each with every seed."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from backend.loadtest.knee import Knee, Observed
from backend.loadtest.rows import RowsCheck
from backend.loadtest.run import Run
from backend.loadtest.summary import Summary
from backend.loadtest.sweep import Sweep, SweepPoint, trial
from backend.loadtest.table import percent


@dataclass(frozen=True)
class Finished:
    """One run and what it comes to."""

    rate_rps: float | None
    """None: the trace's own times."""
    run: Run
    summary: Summary
    rows: RowsCheck | None = None
    """None where nobody could look."""
    interrupted: bool = False
    """Ctrl-C came when it was over, while its usage records were awaited."""

    @property
    def stopped(self) -> bool:
        """Whether it was ended before its time."""
        return self.run.stopped_at_ms is not None

    @property
    def label(self) -> str:
        """What it is called, with what its figures are."""
        return run_label(self.rate_rps, self.run.workload.seed, self.run.target.simulated)


OneRun = Callable[[float | None, int], Awaitable[Finished]]
"""A whole run at a rate with a seed."""


class RateRuns:
    """What has been run so far, and what that says of the knee."""

    def __init__(
        self,
        seeds: Sequence[int],
        one_run: OneRun,
        on_observed: Callable[[Observed], None] = lambda _: None,
    ) -> None:
        self.finished: list[Finished] = []
        self.knee: Knee | None = None
        self._seeds = seeds
        self._one_run = one_run
        self._on_observed = on_observed

    async def at(self, rates: Sequence[float | None]) -> None:
        """Run each of these rates. With more than one, the knee is read off them."""
        known = [rate for rate in rates if rate is not None]
        if len(known) > 1:
            self.knee = Knee(known[0], seeds=len(self._seeds), min_rps=known[0], max_rps=known[-1])
        for rate in rates:
            if not await self._rate(rate):
                return

    async def search(self, knee: Knee) -> None:
        """Run what the search asks for until it is done."""
        self.knee = knee
        while (rate := knee.next_rate()) is not None:
            if not await self._rate(rate):
                return

    @property
    def sweep(self) -> Sweep | None:
        """The rates together; None where one rate was asked for, or none was run."""
        by_rate: dict[float, list[Summary]] = {}
        for each in self.finished:
            if each.rate_rps is not None:
                by_rate.setdefault(each.rate_rps, []).append(each.summary)
        if self.knee is None or not by_rate:
            return None
        points = [SweepPoint(rate_rps=rate, summaries=by_rate[rate]) for rate in sorted(by_rate)]
        return Sweep(points=points, knee=self.knee.result)

    @property
    def refusals(self) -> list[str]:
        """Why what was found proves nothing, a line each.

        A search may try rates that the generator cannot send: they void it only where nothing else
        bounds the knee.
        """
        if self.knee is not None and not self.knee.result.limited_by_generator:
            return []
        return [
            f"{each.label}: {reason}"
            for each in self.finished
            if not each.stopped
            for reason in each.summary.refusals
        ]

    async def _rate(self, rate: float | None) -> bool:
        """Whether all seeds ran to their end."""
        ran: list[Summary] = []
        for seed in self._seeds:
            one = await self._one_run(rate, seed)
            self.finished.append(one)
            if one.stopped or one.interrupted:
                return False
            ran.append(one.summary)
        if self.knee is not None and rate is not None:
            self._on_observed(self.knee.observe(rate, [trial(each) for each in ran]))
        return True


def run_label(rate: float | None, seed: int, simulated: bool | None = None) -> str:
    """What a run is called while it goes on; beside figures, with whether they are simulated."""
    return f"{'trace' if rate is None else f'{rate:g} rps'}, seed {seed}{_marked(simulated)}"


def cut_short(run: Run) -> Run:
    """A run that was ended before its time, without the requests that were never due: what it
    shows is a shorter run."""
    if run.stopped_at_ms is None:
        return run
    end_ms = run.stopped_at_ms
    kept = [outcome for outcome in run.outcomes if outcome.planned.send_at_ms < end_ms]
    workload = replace(
        run.workload,
        requests=tuple(outcome.planned for outcome in kept),
        duration_ms=min(end_ms, run.workload.duration_ms),
    )
    return replace(run, workload=workload, outcomes=kept)


def observed_line(observed: Observed, simulated: bool | None = None) -> str:
    """What a rate came to, for the log."""
    outcome = "passes" if observed.passed else f"fails: {observed.reason}"
    attained = f"attainment {percent(observed.attainment_share)} %"
    return (
        f"{observed.rate_rps:g} rps{_marked(simulated)}: {attained}, "
        f"goodput {observed.goodput_rps:.2f} rps; {outcome}"
    )


def _marked(simulated: bool | None) -> str:
    return " (simulated)" if simulated else ""
