"""What a load test ends with: its table, its JSON, its folder and its exit status."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from backend.loadtest.run_table import run_facts
from backend.loadtest.session import Result
from backend.loadtest.sweep import sweep_facts
from backend.loadtest.table import text

INTERRUPTED = 130


def shown(result: Result) -> str:
    """For people: the sweep's table, or each run's."""
    sweep = result.runs.sweep
    if sweep is not None:
        return text(sweep_facts(sweep))
    return "\n".join(text(run_facts(each.summary)) for each in result.runs.finished)


def document(result: Result) -> str:
    """One JSON document: a summary a run, the knee, and what the books said."""
    runs = result.runs
    knee = None if runs.knee is None else runs.knee.result
    found = {
        "runs": [each.summary for each in runs.finished],
        "knee": knee,
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


def write_report(folder: Path, result: Result) -> Sequence[str]:
    """Write the folder; returns what to tell of it."""
    raise NotImplementedError
