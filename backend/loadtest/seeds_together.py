"""Several seeds at one rate, as one figure with its interval: what a sweep says of each rate."""

from collections.abc import Sequence
from statistics import fmean

import msgspec

from backend.loadtest.knee import confidence_interval
from backend.loadtest.summary import Summary
from backend.loadtest.sweep import judged, trial
from backend.loadtest.table import percent


class SeedsTogether(msgspec.Struct, frozen=True, kw_only=True):
    """Means over the seeds."""

    seeds: list[int]
    simulated: bool | None
    """None where the target does not say."""
    judged: str
    """Whose attainment the interval is of: the interactive requests, or `all` without any."""
    attainment_share: float
    attainment_interval_share: tuple[float, float] | None
    """95 % confidence interval of that mean (Student's t over the seeds)."""
    all_attainment_share: float
    goodput_rps: float
    output_tokens_per_s: float


def seeds_together(summaries: Sequence[Summary]) -> SeedsTogether | None:
    """Of whole runs at one rate; None of fewer than two."""
    whole = [each for each in summaries if each.load.stopped_at_ms is None]
    if len(whole) < 2:
        return None
    shares = [trial(each).attainment_share for each in whole]
    return SeedsTogether(
        seeds=[each.load.seed for each in whole],
        simulated=whole[0].target.simulated,
        judged=judged(whole[0]).name,
        attainment_share=fmean(shares),
        attainment_interval_share=confidence_interval(shares),
        all_attainment_share=fmean(each.all.goodput.attainment_share for each in whole),
        goodput_rps=fmean(each.all.goodput.goodput_rps for each in whole),
        output_tokens_per_s=fmean(each.tokens.output_tokens_per_s for each in whole),
    )


def together_line(found: SeedsTogether) -> str:
    """In one line."""
    marked = " (simulated)" if found.simulated else ""
    share = f"attainment {percent(found.attainment_share)} %"
    words = f"{len(found.seeds)} seeds together{marked}: {share}"
    if found.judged != "all":
        words += f" of {found.judged} requests"
    if found.attainment_interval_share is not None:
        low, high = found.attainment_interval_share
        words += f", 95 % interval {low * 100:.1f} to {high * 100:.1f}"
    if found.judged != "all":
        words += f"; {percent(found.all_attainment_share)} % of all"
    return (
        f"{words}; goodput {found.goodput_rps:,.2f} rps, "
        f"{found.output_tokens_per_s:,.0f} output tok/s"
    )
