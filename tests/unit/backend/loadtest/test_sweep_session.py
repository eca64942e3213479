"""One command's runs on something fake: order, books, Ctrl-C, and what it ends with."""

import asyncio
import io
from dataclasses import replace

import msgspec
import pytest
from made_up_runs import outcome, run_of

from backend.loadtest.asked import Request
from backend.loadtest.measure import GoodputTargets
from backend.loadtest.plan import Workload
from backend.loadtest.progress import Progress
from backend.loadtest.result import document, exit_status, shown
from backend.loadtest.rows import RowsCheck, RowsUnreadable
from backend.loadtest.run import Run
from backend.loadtest.session import Result, Session, warmup_ms_of
from backend.loadtest.under_test import Show
from backend.loadtest.workload import WorkloadError, WorkloadSpec, read_workload

SPEC = WorkloadSpec(format="poisson", rate_rps=5, duration_s=10)
ASKED = Request(
    url="http://target",
    api_key=None,
    model=None,
    data_dir=None,
    virtual=None,
    replicas=1,
    scheduler=None,
    speed=None,
    min_tokens=None,
    timeout_s=60,
    limits=None,
    workload=SPEC,
    warmup_s=2,
    seeds=1,
    repeats=0,
    search=False,
    start_rps=None,
    from_rps=None,
    to_rps=None,
    rates=(5.0,),
    targets=GoodputTargets(),
    output=None,
    output_goal=None,
    as_json=False,
)
AGREEING = RowsCheck(finished=3, found=3, written=3)
DIFFERING = RowsCheck(finished=3, found=2, written=2, mismatches=["r1: no row"])


class FakeService:
    """Answers every request as planned, unless it is told to be interrupted in run `cut_in`."""

    def __init__(
        self,
        *,
        books: RowsCheck | RowsUnreadable | asyncio.CancelledError | None = None,
        settles: bool = True,
        cut_in: int | None = None,
        stopped_at_ms: float | None = None,
        cpu_share: float = 0.1,
        simulated: bool | None = None,
    ) -> None:
        self.simulated = simulated
        self.did: list[str] = []
        self.salts: list[str] = []
        self._books = books
        self._settles = settles
        self._cut_in = cut_in
        self._stopped_at_ms = stopped_at_ms
        self._cpu_share = cpu_share

    async def run(self, workload: Workload, salt: str, show: Show) -> Run:
        self.did.append(f"run {len(workload.requests) > 0}")
        self.salts.append(salt)
        made = [outcome(p.number, send_at_ms=p.send_at_ms) for p in workload.requests]
        run = run_of(
            [replace(o, planned=p) for o, p in zip(made, workload.requests, strict=True)],
            duration_ms=workload.duration_ms,
            cpu_share=self._cpu_share,
            simulated=self.simulated,
        )
        run.workload = workload
        if self._cut_in == len(self.salts):
            if self._stopped_at_ms is None:
                raise asyncio.CancelledError
            run.stopped_at_ms = self._stopped_at_ms
        return run

    async def settle(self) -> bool:
        self.did.append("settle")
        return self._settles

    async def rows(self, run: Run) -> RowsCheck | None:
        self.did.append("rows")
        if isinstance(self._books, BaseException):
            raise self._books
        return self._books


async def ran(asked: Request, service: FakeService) -> tuple[Result, str]:
    """The result, and what was said meanwhile."""
    said = io.StringIO()
    result = await Session(asked, service, Progress(said, live=False)).run()
    return result, said.getvalue()


async def test_between_runs_the_target_settles_and_prompts_are_new() -> None:
    """Before the second and the third, not before the first."""
    service = FakeService()
    result, _ = await ran(replace(ASKED, seeds=3), service)
    assert service.did == ["run True", "rows", *("settle", "run True", "rows") * 2]
    assert len(set(service.salts)) == 3
    assert [each.run.workload.seed for each in result.runs.finished] == [0, 1, 2]
    assert exit_status(result) == 0


async def test_a_target_that_does_not_settle_is_said_to() -> None:
    """The next run goes on all the same."""
    _, said = await ran(replace(ASKED, seeds=2), FakeService(settles=False))
    assert "5 rps, seed 1: something of the last run is still under way" in said


async def test_books_that_agree_are_in_the_summary() -> None:
    """And on the log."""
    result, said = await ran(ASKED, FakeService(books=AGREEING))
    assert "rows: 3 of 3 finished requests have one; every row agrees" in said
    assert result.runs.finished[0].run.rows_written == 3
    assert exit_status(result) == 0


async def test_books_that_differ_make_it_fail() -> None:
    """Whatever the latencies were; the request is named on the log and in the JSON."""
    result, said = await ran(ASKED, FakeService(books=DIFFERING))
    assert "1 MISMATCHES" in said
    assert "r1: no row" in said
    assert exit_status(result) == 1
    (complaint,) = result.complaints
    assert "differ" in complaint
    found = msgspec.json.decode(document(result))
    assert found["row_mismatches"] == ["r1: no row"]


async def test_books_that_cannot_be_read_lose_no_figures() -> None:
    """The run is shown, without rows; the command fails and says why."""
    result, said = await ran(ASKED, FakeService(books=RowsUnreadable("Postgres is gone")))
    assert "Postgres is gone" in said
    (one,) = result.runs.finished
    assert one.summary.rows is None
    assert exit_status(result) == 1


async def test_a_generator_that_was_the_bottleneck_makes_it_fail() -> None:
    """It says why; what was measured is shown all the same, as refused."""
    result, _ = await ran(ASKED, FakeService(cpu_share=0.95))
    assert exit_status(result) == 1
    (complaint,) = result.complaints
    assert complaint.startswith("5 rps, seed 0: the load generator was the bottleneck")
    assert "REFUSED" in shown(result)


async def test_a_void_run_is_done_again_where_asked() -> None:
    """With other prompts, as often as is allowed; a run that stands ends it."""
    service = FakeService(cpu_share=0.95)
    result, said = await ran(replace(ASKED, repeats=2), service)
    assert exit_status(result) == 1
    assert len(set(service.salts)) == 3
    assert len(result.runs.finished) == 1
    assert said.count("it is run again") == 2
    _, said = await ran(replace(ASKED, repeats=2), FakeService())
    assert "again" not in said


async def test_ctrl_c_in_a_run_shows_what_there_is_and_asks_no_books() -> None:
    """The run until then, as a shorter one; exit status 130."""
    service = FakeService(books=DIFFERING, cut_in=1, stopped_at_ms=6_000.0)
    result, _ = await ran(replace(ASKED, seeds=3), service)
    assert service.did == ["run True"]
    (one,) = result.runs.finished
    assert one.summary.load.duration_ms == 6_000
    assert exit_status(result) == 130
    assert msgspec.json.decode(document(result))["interrupted"] is True


@pytest.mark.parametrize("stopped_at_ms", [None, 1_500.0])
async def test_ctrl_c_before_anything_was_measured_leaves_the_runs_before(
    stopped_at_ms: float | None,
) -> None:
    """Whether the run said when it was stopped, in its warm-up, or gave up altogether."""
    service = FakeService(cut_in=2, stopped_at_ms=stopped_at_ms)
    result, said = await ran(replace(ASKED, seeds=3), service)
    assert len(result.runs.finished) == 1
    assert exit_status(result) == 130
    assert "the run under way had measured nothing yet" in said


@pytest.mark.parametrize("stopped_at_ms", [None, 1_500.0])
async def test_ctrl_c_before_anything_was_measured_says_that_nothing_is_written(
    stopped_at_ms: float | None,
) -> None:
    """In one line; a silent end would look like a report."""
    result, said = await ran(ASKED, FakeService(cut_in=1, stopped_at_ms=stopped_at_ms))
    assert result.runs.finished == []
    assert exit_status(result) == 130
    assert said.splitlines() == ["interrupted before anything was measured: nothing is written"]


async def test_ctrl_c_while_rows_are_awaited_keeps_the_run() -> None:
    """It is whole, only its books were not read; no other follows."""
    service = FakeService(books=asyncio.CancelledError())
    result, said = await ran(replace(ASKED, seeds=3), service)
    assert service.did == ["run True", "rows"]
    (one,) = result.runs.finished
    assert one.summary.load.stopped_at_ms is None
    assert (one.rows, one.summary.rows) == (None, None)
    assert one.summary.all.goodput.attainment_share == 1
    assert exit_status(result) == 130
    assert "interrupted while its usage records were awaited" in said


async def test_a_sweep_is_shown_as_one_table() -> None:
    """With its knee."""
    asked = replace(ASKED, rates=(4.0, 5.0))
    result, said = await ran(asked, FakeService())
    assert "4 rps: attainment 100.0 %, goodput" in said
    assert "at least 5 rps" in shown(result)
    assert "Poisson at each rate\n" in shown(result)
    assert msgspec.json.decode(document(result))["knee"]["knee_rps"] == 5


async def test_every_line_with_simulated_figures_says_so() -> None:
    """Of a run under way, of a rate, of the books, and of what is wrong."""
    asked = replace(ASKED, rates=(4.0, 5.0))
    service = FakeService(books=DIFFERING, simulated=True)
    result, said = await ran(asked, service)
    lines = [line for line in said.splitlines() if "rps" in line]
    assert len(lines) > 4
    assert all("(simulated): " in line for line in lines), said
    assert "(simulated): " in f"{result.runs.finished[0].label}: "
    _, said = await ran(asked, FakeService(books=DIFFERING, simulated=False))
    assert "simulated" not in said


async def test_a_search_that_runs_out_of_schedule_keeps_what_it_has() -> None:
    """It says why it ended, and fails."""
    spec = replace(SPEC, rate_rps=None, duration_s=800_000)
    asked = replace(ASKED, workload=spec, warmup_s=None, rates=(0.0005, 9.0))
    result, _ = await ran(asked, FakeService())
    assert [each.rate_rps for each in result.runs.finished] == [0.0005]
    assert exit_status(result) == 1
    assert "one run has at most" in result.complaints[0]


def test_the_warm_up_is_a_fifth_and_at_most_a_minute_unless_it_is_said() -> None:
    """And never the whole schedule."""
    short, long = (read_workload(replace(SPEC, duration_s=s)) for s in (10.0, 900.0))
    assert warmup_ms_of(ASKED, short) == 2_000
    assert warmup_ms_of(replace(ASKED, warmup_s=None), short) == 2_000
    assert warmup_ms_of(replace(ASKED, warmup_s=None), long) == 60_000
    with pytest.raises(WorkloadError, match="leaves nothing"):
        warmup_ms_of(replace(ASKED, warmup_s=10), short)
