"""Tokens of a run: what flowed, what was planned, and what a cache had."""

from backend.loadtest.measure import counted_by_events, finished
from backend.loadtest.run import Outcome, Run
from backend.loadtest.steady import Flow
from backend.loadtest.summary import HitRate, Tokens


def tokens(run: Run, sent: list[Outcome], flowed: Flow) -> Tokens:
    """What flowed in the window, and how many of the planned output tokens were generated."""
    told = [o for o in sent if finished(o) and not counted_by_events(o)]
    planned = sum(outcome.planned.output_tokens for outcome in told)
    return Tokens(
        input_tokens_per_s=flowed.input_tokens_per_s,
        cached_tokens_per_s=flowed.cached_tokens_per_s,
        output_tokens_per_s=flowed.output_tokens_per_s,
        output_planned_share=(
            sum(outcome.output_tokens for outcome in told) / planned if planned else None
        ),
        counted_by_events=sum(counted_by_events(outcome) for outcome in run.outcomes),
    )


def hit_rate(run: Run, sent: list[Outcome]) -> HitRate:
    """Of the window, of the run, and at best."""
    return HitRate(
        window_share=_hit_share(sent),
        run_share=_hit_share(run.outcomes),
        ideal_share=run.workload.ideal_hit_rate,
        unplanned_share=_unplanned_share(run.outcomes),
        unreported=sum(finished(o) and o.cached_tokens is None for o in run.outcomes),
    )


def _hit_share(outcomes: list[Outcome]) -> float | None:
    prompt = cached = 0
    for outcome in outcomes:
        if outcome.cached_tokens is not None:
            prompt += outcome.prompt_tokens
            cached += outcome.cached_tokens
    return cached / prompt if prompt else None


def _unplanned_share(outcomes: list[Outcome]) -> float:
    told = [outcome for outcome in outcomes if outcome.cached_tokens is not None]
    prompt = sum(outcome.prompt_tokens for outcome in told)
    beyond = sum(max(0, o.prompt_tokens - o.planned.prompt_tokens) for o in told)
    return beyond / prompt if prompt else 0.0
