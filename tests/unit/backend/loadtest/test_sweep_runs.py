"""Rates and seeds, run by a fake: in which order, what ends it, and what voids it."""

from dataclasses import replace

import msgspec
import pytest
from made_up_runs import outcome, run_of

from backend.loadtest.knee import Knee, Observed
from backend.loadtest.rate_runs import Finished, RateRuns, cut_short
from backend.loadtest.run import Run
from backend.loadtest.run_table import run_facts
from backend.loadtest.summarise import summarise


class FakeRuns:
    """A target that holds its targets up to a rate; the generator keeps up to another."""

    def __init__(
        self, *, holds_rps: float = 1e9, sends_rps: float = 1e9, stop_after: int | None = None
    ) -> None:
        self.asked: list[tuple[float | None, int]] = []
        self._holds_rps = holds_rps
        self._sends_rps = sends_rps
        self._stop_after = stop_after

    async def one(self, rate: float | None, seed: int) -> Finished:
        self.asked.append((rate, seed))
        tpot_ms = 10.0 if rate is None or rate <= self._holds_rps else 90.0
        run = run_of([outcome(at, send_at_ms=at * 100.0, tpot_ms=tpot_ms) for at in range(50)])
        run.workload = replace(run.workload, seed=seed)
        if self._stop_after is not None and len(self.asked) > self._stop_after:
            run.stopped_at_ms = 5_000.0
        summary = summarise(run)
        if rate is not None and rate > self._sends_rps:
            summary = msgspec.structs.replace(summary, refusals=["it was late"])
        return Finished(rate, run, summary)


async def test_every_rate_runs_with_every_seed_and_is_judged() -> None:
    """Rate by rate; the knee is the greatest that passed under one that failed."""
    fake, judged = FakeRuns(holds_rps=5), list[Observed]()
    runs = RateRuns([3, 4], fake.one, judged.append)
    await runs.at([4, 5, 6])
    assert fake.asked == [(4, 3), (4, 4), (5, 3), (5, 4), (6, 3), (6, 4)]
    assert [(each.rate_rps, each.passed) for each in judged] == [(4, True), (5, True), (6, False)]
    assert runs.sweep is not None
    assert (runs.sweep.knee.knee_rps, runs.sweep.knee.failed_rps) == (5, 6)
    assert [(p.rate_rps, len(p.summaries)) for p in runs.sweep.points] == [(4, 2), (5, 2), (6, 2)]


async def test_a_search_follows_the_knee() -> None:
    """Up until a fail, then between."""
    fake = FakeRuns(holds_rps=5.4)
    runs = RateRuns([0], fake.one)
    await runs.search(Knee(2, seeds=1))
    assert [rate for rate, _ in fake.asked][:4] == [2, 4, 8, 6]
    assert runs.sweep is not None
    assert runs.sweep.knee.done
    assert 5.1 < (runs.sweep.knee.knee_rps or 0) <= 5.4


async def test_one_rate_is_no_sweep() -> None:
    """Its runs are shown one by one."""
    runs = RateRuns([0, 1], FakeRuns().one)
    await runs.at([None])
    assert runs.sweep is None
    assert [each.rate_rps for each in runs.finished] == [None, None]


async def test_a_run_that_was_stopped_is_the_last_and_judges_nothing() -> None:
    """What was whole before it counts."""
    fake = FakeRuns(stop_after=3)
    runs = RateRuns([0, 1], fake.one)
    await runs.at([4, 5, 6])
    assert len(fake.asked) == 4
    assert [each.stopped for each in runs.finished] == [False, False, False, True]
    assert runs.sweep is not None
    assert [each.rate_rps for each in runs.sweep.knee.observed] == [4]


async def test_a_late_generator_voids_one_run_and_a_knee_that_is_its_own() -> None:
    """But not a search that met it beyond a rate which failed honestly."""
    alone = RateRuns([7], FakeRuns(sends_rps=3).one)
    await alone.at([4])
    assert alone.refusals == ["4 rps, seed 7: it was late"]
    limited = RateRuns([0], FakeRuns(sends_rps=5).one)
    await limited.at([4, 6])
    assert limited.refusals == ["6 rps, seed 0: it was late"]
    bounded = RateRuns([0], FakeRuns(holds_rps=3, sends_rps=7).one)
    await bounded.search(Knee(2, seeds=1))
    await bounded.at([2, 4, 8])
    assert bounded.refusals == []


@pytest.mark.parametrize(("stopped_at_ms", "sent"), [(None, 50), (2_000.0, 20)])
def test_a_run_cut_short_is_a_shorter_run(stopped_at_ms: float | None, sent: int) -> None:
    """What was never due is not counted against the target."""
    run: Run = run_of([outcome(at, send_at_ms=at * 100.0) for at in range(50)])
    run.stopped_at_ms = stopped_at_ms
    shown = cut_short(run)
    assert len(shown.outcomes) == len(shown.workload.requests) == sent
    assert shown.workload.duration_ms == (stopped_at_ms or 10_000.0)
    assert summarise(shown).all.goodput.attainment_share == 1.0


def test_what_was_in_flight_at_the_stop_is_neither_good_nor_bad() -> None:
    """It is left out of what is judged, and the reader is told; what failed before is bad."""
    run = run_of([outcome(at, send_at_ms=at * 100.0) for at in range(50)])
    run.stopped_at_ms = 2_000.0
    failed, *streams = run.outcomes[15:20]
    failed.end = "failed"
    for stream in streams:
        stream.end, stream.ended_at_ms = "cut", 2_000.1
    summary = summarise(cut_short(run))
    assert (summary.all.sent, summary.all.goodput.good) == (16, 15)
    assert summary.ends == {"ok": 15, "failed": 1}
    assert (summary.load.stopped_at_ms, summary.load.unfinished) == (2_000, 4)
    assert summary.load.offered_rps == 10
    told = "INTERRUPTED after 2.0 s: 4 requests that were in flight then are left out"
    assert any(told in notice for notice in run_facts(summary).notices)


def test_a_stop_before_anything_ended_proves_nothing() -> None:
    """Nor was it the schedule that planned nothing."""
    run = run_of([outcome(0)])
    run.stopped_at_ms = 100.0
    (reason,) = summarise(cut_short(run)).refusals
    assert "when it was interrupted" in reason
