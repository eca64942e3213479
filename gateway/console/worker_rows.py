"""Workers as pages show them: in which state each is, and which of its figures still say anything.

The rows are those of the live view.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any

Row = Mapping[str, Any]
TOLD_BY_ENGINE = ("running", "waiting", "kv_used_tokens", "kv_total_tokens")


class WorkerState(StrEnum):
    """How a worker stands, as this gateway sees it."""

    HEALTHY = "healthy"
    STARTING = "starting or unreachable"
    """It has not answered since this gateway began."""
    UNREACHABLE = "unreachable"
    """It answered once, and does not any more."""


def worker_rows(views: Iterable[Row]) -> list[dict[str, Any]]:
    """The workers by id, each with its `state`. What the engine of one that cannot be reached told
    before is not known to be so still."""
    rows = []
    for view in sorted(views, key=lambda each: str(each["id"])):
        state = _state_of(view)
        stale = {} if state is WorkerState.HEALTHY else dict.fromkeys(TOLD_BY_ENGINE)
        rows.append({**view, **stale, "state": state})
    return rows


def unreachable(rows: Iterable[Row]) -> list[str]:
    """Ids of those that answered once and do not any more."""
    return [row["id"] for row in rows if row["state"] is WorkerState.UNREACHABLE]


def unserved(models: Iterable[str], rows: Sequence[Row], hosted: Collection[str] = ()) -> list[str]:
    """Models without a worker that are not `hosted`, and pools whose workers are all away: `m`, or
    `m (batch)` of those that are reserved for a class."""
    served: dict[str, bool] = {}
    for row in rows:
        name = row["model"] if row["class"] is None else f"{row['model']} ({row['class']})"
        served[name] = served.get(name, False) or row["state"] is WorkerState.HEALTHY
    registered = {row["model"] for row in rows}
    without = [model for model in models if model not in registered and model not in hosted]
    return without + [name for name, is_served in served.items() if not is_served]


def is_last(row: Row, rows: Sequence[Row]) -> bool:
    """Whether no other healthy worker that takes new requests is in its pool."""
    return not any(
        each["id"] != row["id"]
        and (each["model"], each["class"]) == (row["model"], row["class"])
        and each["state"] is WorkerState.HEALTHY
        and not each["draining"]
        for each in rows
    )


def _state_of(view: Row) -> WorkerState:
    if view["healthy"]:
        return WorkerState.HEALTHY
    return WorkerState.STARTING if view["load_age_ms"] is None else WorkerState.UNREACHABLE
