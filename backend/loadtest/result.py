"""What a load test ends with: its table, its JSON, its folder and its exit status."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from backend.loadtest.asked import Request
from backend.loadtest.old_report import remove_report
from backend.loadtest.rate_runs import Finished, run_label
from backend.loadtest.report import REQUESTS, write_requests, write_run, write_sweep
from backend.loadtest.run_table import run_facts
from backend.loadtest.seeds_together import SeedsTogether, seeds_together, together_line
from backend.loadtest.session import Result
from backend.loadtest.sweep import Sweep, sweep_facts
from backend.loadtest.table import text

INTERRUPTED = 130


def shown(result: Result) -> str:
    """For people: the sweep's table, or each run's."""
    sweep = result.runs.sweep
    if sweep is not None:
        return text(sweep_facts(sweep))
    shown_runs = [text(run_facts(each.summary)) for each in result.runs.finished]
    together = _together(result)
    return "\n".join([*shown_runs, *([] if together is None else [together_line(together) + "\n"])])


def _together(result: Result) -> SeedsTogether | None:
    """Of the seeds at the one rate that was run."""
    if result.runs.sweep is not None:
        return None
    return seeds_together([each.summary for each in result.runs.finished])


def document(result: Result) -> str:
    """One JSON document: a summary a run, the knee or the seeds together, and what the books
    said."""
    runs = result.runs
    knee = None if runs.knee is None else runs.knee.result
    found = {
        "runs": [each.summary for each in runs.finished],
        "knee": knee,
        "seeds_together": _together(result),
        "row_mismatches": [
            mismatch for each in runs.finished if each.rows for mismatch in each.rows.mismatches
        ],
        "interrupted": result.interrupted,
        "failure": result.failure,
    }
    return msgspec.json.encode(found).decode()


def exit_status(result: Result) -> int:
    """See `weir loadtest`."""
    if result.interrupted:
        return INTERRUPTED
    return 1 if result.complaints else 0


def write_report(folder: Path, asked: Request, result: Result) -> list[str]:
    """Write what there is into the folder, in place of what an earlier test left there; returns
    what to tell of it. Several seeds at one rate have a folder each, inside it.

    Raises OSError.
    """
    runs = result.runs.finished
    sweep = result.runs.sweep
    parameters = asked.parameters
    remove_report(folder)
    if sweep is not None:
        folder.mkdir(parents=True, exist_ok=True)
        write_requests(
            folder / REQUESTS, [(_label(each), each.run) for each in runs], asked.targets
        )
        near = _nearest_the_knee(sweep, runs)
        missing = {
            write_sweep(
                folder,
                sweep,
                parameters,
                samples=near.run.samples,
                sampled=_label(near),
                output_goal_tokens_per_s=asked.output_goal,
            )
        }
    else:
        folders = [folder / f"seed-{each.run.workload.seed}" for each in runs]
        missing = {
            write_run(inner if len(runs) > 1 else folder, each.run, each.summary, parameters)
            for inner, each in zip(folders, runs, strict=True)
        }
    return [f"written to {folder}", *(why for why in missing if why is not None)]


def _nearest_the_knee(sweep: Sweep, runs: Sequence[Finished]) -> Finished:
    """The run whose workers are drawn: the first at the knee, or at the lowest rate."""
    rate = sweep.knee.knee_rps or sweep.points[0].rate_rps
    return next(each for each in runs if each.rate_rps == rate)


def _label(one: Finished) -> str:
    return run_label(one.rate_rps, one.run.workload.seed)
