"""Reasons to doubt a run: those that make it prove nothing, and those to be read with it."""

from backend.loadtest.summary import Summary

SEND_LAG_P99_MAX_MS = 10.0
CPU_SHARE_MAX = 0.8
REALISTIC_HIT_SHARE_MAX = 0.9
HIT_SHARE_TOLERANCE = 0.01
OUTPUT_SHARE_TOLERANCE = 0.05


def refusals(summary: Summary) -> list[str]:
    """Why the run proves nothing of its target; empty where it does."""
    found = []
    lag = summary.generator.send_lag_p99_ms
    if lag > SEND_LAG_P99_MAX_MS:
        found.append(
            f"The generator was the bottleneck: its send lag p99 was {lag:,.1f} ms, over "
            f"{SEND_LAG_P99_MAX_MS:g} ms. Send less, or from a faster machine."
        )
    if not summary.all.sent:
        found.append("No request was planned for the time after the warm-up.")
    return found


def warnings(summary: Summary) -> list[str]:
    """What to read the figures with."""
    return [
        *_hit_rate(summary),
        *_generator(summary),
        *_outputs(summary),
        *(["The queue grows: these figures are of no steady state."] * summary.queue_grows),
        *_rows(summary),
    ]


def _hit_rate(summary: Summary) -> list[str]:
    hit, found = summary.hit_rate, []
    if hit.ideal_share > REALISTIC_HIT_SHARE_MAX:
        found.append(
            f"The workload itself is unrealistic: {hit.ideal_share:.0%} of its prompt tokens could "
            "be found in a prefix cache. Prompts that repeat flatter every figure."
        )
    if hit.run_share is None:
        if summary.all.finished:
            found.append("The target does not report cached tokens: its hit rate is unknown.")
        return found
    if hit.run_share > hit.ideal_share + HIT_SHARE_TOLERANCE:
        found.append(
            f"The hit rate of {hit.run_share:.1%} is above the workload's ideal of "
            f"{hit.ideal_share:.1%}: the cache held this workload's prompts before the run, or "
            "the workload is not what it says."
        )
    if hit.unreported:
        found.append(f"{hit.unreported:,} answers did not report cached tokens.")
    return found


def _generator(summary: Summary) -> list[str]:
    share = summary.generator.cpu_share
    if share <= CPU_SHARE_MAX:
        return []
    return [f"The generator used {share:.0%} of a core: its own delays may be in the figures."]


def _outputs(summary: Summary) -> list[str]:
    share = summary.tokens.output_planned_share
    if share is None or abs(share - 1) <= OUTPUT_SHARE_TOLERANCE:
        return []
    return [f"Answers had {share:.0%} of the output tokens that the workload planned."]


def _rows(summary: Summary) -> list[str]:
    rows = summary.rows
    if rows is None or rows.match:
        return []
    written = f"Usage records MISMATCH: {rows.written:,} were written, {rows.begun:,} answers began"
    return [f"{written} and {rows.undecided:,} requests failed before one."]
