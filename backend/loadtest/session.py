"""One `weir loadtest`: what is drawn, run, summarised and compared, rate after rate."""

import asyncio
import secrets
from dataclasses import dataclass, replace

from backend.loadtest.asked import Request
from backend.loadtest.knee import Knee
from backend.loadtest.plan import Workload
from backend.loadtest.progress import Progress
from backend.loadtest.rate_runs import (
    Finished,
    RateRuns,
    cut_short,
    observed_line,
    run_label,
)
from backend.loadtest.rows import RowsCheck, RowsUnreadable
from backend.loadtest.run import Run
from backend.loadtest.summarise import summarise
from backend.loadtest.tenants import TenantsNotMade
from backend.loadtest.under_test import UnderTest
from backend.loadtest.workload import WorkloadError, read_workload

WARMUP_SHARE = 0.2
WARMUP_S_MAX = 60.0
NOTHING_AT_ALL = "interrupted before anything was measured: nothing is written"
NOTHING_SHOWN = "interrupted: the run under way had measured nothing yet, and is left out"


class Interrupted(Exception):
    """Ctrl-C, before the run under way showed anything."""


@dataclass(frozen=True)
class Result:
    """What came of it."""

    runs: RateRuns
    interrupted: bool = False
    failure: str | None = None
    """Why it ended before its time, where that was not Ctrl-C."""

    @property
    def complaints(self) -> list[str]:
        """Why it proves less than it should, a line each; empty where it holds."""
        differing = [
            f"{each.label}: the usage records differ from "
            f"what the clients were told, or could not be read ({len(each.rows.mismatches)} found)"
            for each in self.runs.finished
            if each.rows is not None and not each.rows.holds
        ]
        return [*([self.failure] if self.failure else []), *self.runs.refusals, *differing]


class Session:
    """Runs what was asked on what is under test."""

    def __init__(self, asked: Request, under_test: UnderTest, progress: Progress) -> None:
        self._asked = asked
        self._under_test = under_test
        self._progress = progress
        # Prompts of their own for each run: whatever a cache keeps of an earlier one, from this
        # command or the last, every rate finds a cache that knows none of its prompts.
        self._salt = secrets.token_hex(4)
        self._runs = 0

    async def run(self) -> Result:
        """All of it, or what was done when it ended early."""
        asked = self._asked
        seeds = range(asked.workload.seed, asked.workload.seed + asked.seeds)
        runs = RateRuns(
            seeds,
            self._one_run,
            lambda observed: self._progress.say(
                observed_line(observed, self._under_test.simulated)
            ),
        )
        try:
            if asked.search and asked.start_rps is not None:
                await runs.search(
                    Knee(
                        asked.start_rps,
                        seeds=asked.seeds,
                        min_rps=asked.from_rps,
                        max_rps=asked.to_rps,
                    )
                )
            else:
                await runs.at(asked.rates or (None,))
        except (asyncio.CancelledError, Interrupted) as error:
            if isinstance(error, asyncio.CancelledError):
                _not_cancelled()
            self._progress.end()
            self._progress.say(NOTHING_SHOWN if runs.finished else NOTHING_AT_ALL)
            return Result(runs, interrupted=True)
        except (WorkloadError, TenantsNotMade) as error:
            if not runs.finished:
                raise
            return Result(runs, failure=str(error))
        finally:
            self._progress.end()
        ended = any(each.stopped or each.interrupted for each in runs.finished)
        return Result(runs, interrupted=ended)

    async def _one_run(self, rate: float | None, seed: int) -> Finished:
        """A run, again where it is void and there is a repeat left: with prompts of its own."""
        for left in range(self._asked.repeats, 0, -1):
            finished = await self._run_once(rate, seed)
            if not finished.summary.refused or finished.stopped or finished.interrupted:
                return finished
            self._progress.say(
                f"{finished.label}: void, since {finished.summary.refusals[0]}; it is run again "
                f"({left} left)"
            )
        return await self._run_once(rate, seed)

    async def _run_once(self, rate: float | None, seed: int) -> Finished:
        workload = read_workload(replace(self._asked.workload, rate_rps=rate, seed=seed))
        warmup_ms = warmup_ms_of(self._asked, workload)
        label = run_label(rate, seed, self._under_test.simulated)
        if self._runs and not await self._under_test.settle():
            self._progress.say(f"{label}: something of the last run is still under way")
        self._runs += 1
        self._progress.begin(label)
        run = await self._under_test.run(
            workload, f"{self._salt}-{self._runs}", self._progress.show
        )
        self._progress.end()
        if run.stopped_at_ms is not None and run.stopped_at_ms <= warmup_ms:
            raise Interrupted
        rows, interrupted = None, False
        try:
            rows = await self._rows(run, label)
        except asyncio.CancelledError:
            # The run is whole: what it measured stands, without its books.
            _not_cancelled()
            interrupted = True
            self._progress.say(
                f"{label}: interrupted while its usage records were awaited: not compared"
            )
        run = cut_short(run)
        summary = summarise(run, self._asked.targets, warmup_ms)
        return Finished(rate, run, summary, rows, interrupted)

    async def _rows(self, run: Run, label: str) -> RowsCheck | None:
        """Whoever pressed Ctrl-C does not wait for books."""
        if run.stopped_at_ms is not None:
            return None
        try:
            rows = await self._under_test.rows(run)
        except RowsUnreadable as error:
            # What was measured stands; that it could not be compared is as bad as a difference.
            ended = sum(outcome.end == "ok" for outcome in run.outcomes)
            rows = RowsCheck(finished=ended, found=0, written=0, mismatches=[str(error)])
        else:
            run.rows_written = None if rows is None else rows.written
        for line in [] if rows is None else rows.lines():
            self._progress.say(f"{label}: {line}")
        return rows


def _not_cancelled() -> None:
    if (task := asyncio.current_task()) is not None:
        task.uncancel()


def warmup_ms_of(asked: Request, workload: Workload) -> float:
    """What is not measured at the start of this schedule, in milliseconds.

    Raises WorkloadError where that is all of it.
    """
    if asked.warmup_s is None:
        return min(workload.duration_ms * WARMUP_SHARE, WARMUP_S_MAX * 1000)
    if asked.warmup_s * 1000 >= workload.duration_ms:
        raise WorkloadError(
            f"a warm-up of {asked.warmup_s:g} s leaves nothing of a schedule of "
            f"{workload.duration_ms / 1000:g} s"
        )
    return asked.warmup_s * 1000
