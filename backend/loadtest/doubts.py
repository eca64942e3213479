"""Reasons to doubt a run that stands."""

from backend.loadtest.summary import Summary
from backend.loadtest.table import percent

REALISTIC_HIT_SHARE_MAX = 0.9
HIT_SHARE_TOLERANCE = 0.01
OUTPUT_SHARE_TOLERANCE = 0.05


def warnings(summary: Summary) -> list[str]:
    """What to read the figures with."""
    return [
        *_interrupted(summary),
        *_hit_rate(summary),
        *_outputs(summary),
        *_counts(summary),
        *_queues(summary),
        *_rows(summary),
    ]


def _hit_rate(summary: Summary) -> list[str]:
    hit, found = summary.hit_rate, []
    if hit.ideal_share > REALISTIC_HIT_SHARE_MAX:
        found.append(
            f"The workload itself is unrealistic: {percent(hit.ideal_share)} % of its prompt "
            "tokens could be found in a prefix cache. Prompts that repeat flatter every figure."
        )
    if hit.run_share is None:
        if summary.all.finished:
            found.append("The target does not report cached tokens: its hit rate is unknown.")
        return found
    at_most = hit.ideal_share * (1 - hit.unplanned_share) + hit.unplanned_share
    if hit.run_share > at_most + HIT_SHARE_TOLERANCE:
        found.append(
            f"The hit rate of {percent(hit.run_share)} % is above the workload's ideal of "
            f"{percent(hit.ideal_share)} %: the cache held this workload's prompts before the run, "
            "or the workload is not what it says."
        )
    if hit.unreported:
        found.append(f"{hit.unreported:,} answers did not report cached tokens.")
    return found


def _outputs(summary: Summary) -> list[str]:
    share = summary.tokens.output_planned_share
    if share is None or abs(share - 1) <= OUTPUT_SHARE_TOLERANCE:
        return []
    return [f"Answers had {percent(share)} % of the output tokens that the workload planned."]


def _interrupted(summary: Summary) -> list[str]:
    load = summary.load
    if load.stopped_at_ms is None:
        return []
    left = f"{load.unfinished:,} requests that were in flight then are left out"
    return [f"The run was INTERRUPTED after {load.stopped_at_ms / 1000:,.1f} s: {left}."]


def _counts(summary: Summary) -> list[str]:
    count = summary.tokens.counted_by_events
    if not count:
        return []
    words = f"{count:,} whole answers did not say how many tokens they had: events were counted"
    return [f"{words} in TPOT and output tok/s. An event may carry several tokens."]


def _queues(summary: Summary) -> list[str]:
    if summary.queue_grows:
        return ["The queue grows: these figures are of no steady state."]
    return [
        f"The queue of {group.name} requests grows: their figures are of no steady state."
        for group in summary.by_class
        if group.queue_grows
    ]


def _rows(summary: Summary) -> list[str]:
    rows = summary.rows
    if rows is None or rows.match:
        return []
    written = f"Usage records MISMATCH: {rows.written:,} were written, {rows.begun:,} answers began"
    return [f"{written} and {rows.undecided:,} requests failed before one."]
