"""What an ended request used: from what was seen of its streams to its usage record. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from billing.domain.policy import CURRENT_POLICY, is_billable
from billing.domain.usage_record import Outcome, UsageRecord, UsageSource
from gateway.domain.lease import Admitted
from gateway.serving.choices import Choice
from gateway.wire.upstream import Usage


@dataclass(frozen=True)
class Totals:
    """Token counts of a request. A prompt counts once, however many choices it has."""

    prompt: int
    cached: int
    output: int
    reasoning: int
    source: UsageSource
    flags: tuple[str, ...]


_TRUST = (
    UsageSource.ENGINE_FINAL,
    UsageSource.ENGINE_PROGRESS,
    UsageSource.COUNTED,
    UsageSource.ESTIMATED,
)


def count(choices: Sequence[Choice], prompt_estimates: Sequence[int]) -> Totals:
    """Add up what the engines said, and where they said nothing, what was seen.

    The source is that of the least trustworthy count that entered. `prompt_estimates` are
    admission's counts of each prompt.
    """
    prompts: dict[int, Usage] = {}
    output = reasoning = 0
    sources = []
    for choice in choices:
        usage = choice.usage
        if usage is not None:
            prompts.setdefault(choice.prompt, usage)
            output += max(usage.output_tokens, 0)
            reasoning += max(usage.output_reasoning_tokens, 0)
            sources.append(
                UsageSource.ENGINE_FINAL if choice.usage_is_final else UsageSource.ENGINE_PROGRESS
            )
        elif choice.deltas:
            output += choice.deltas
            sources.append(UsageSource.COUNTED)
        else:
            sources.append(UsageSource.ESTIMATED)
    prompt = cached = 0
    flags: set[str] = set()
    for index, estimated in enumerate(prompt_estimates):
        known = prompts.get(index)
        if known is None:
            began = any(c.deltas for c in choices if c.prompt == index)
            prompt += estimated if began else 0
            continue
        prompt += max(known.prompt_tokens, 0)
        if known.cached_tokens > known.prompt_tokens:
            flags.add("cached_over_prompt")
        cached += max(0, min(known.cached_tokens, known.prompt_tokens))
    if reasoning > output:
        flags.add("reasoning_over_output")
        reasoning = output
    source = max(sources, key=_TRUST.index, default=UsageSource.ESTIMATED)
    return Totals(prompt, cached, output, reasoning, source, tuple(sorted(flags)))


def usage_record(
    admitted: Admitted,
    choices: Sequence[Choice],
    outcome: Outcome,
    *,
    prompt_estimates: Sequence[int],
    arrival_us: int,
    ended_at_ms: int,
) -> UsageRecord:
    """The record of an ended request. `arrival_us` is on the monotonic clock, as choices' times."""
    if outcome is Outcome.REFUSED:
        totals = Totals(0, 0, 0, 0, UsageSource.ENGINE_FINAL, ())
    else:
        totals = count(choices, prompt_estimates)
    firsts = [c.first_token_us for c in choices if c.first_token_us is not None]
    ttft_us = min(firsts) - arrival_us if firsts else None
    served = [choice for choice in choices if choice.worker is not None]
    attempts = sorted(
        (attempt for choice in choices for attempt in choice.ended_attempts),
        key=lambda attempt: attempt.attempt,
    )
    return UsageRecord(
        request_id=admitted.request_id,
        tenant_id=admitted.tenant_id,
        api_key_id=admitted.api_key_id,
        model=admitted.model,
        request_class=admitted.request_class,
        admitted_at_ms=admitted.admitted_at_ms,
        ended_at_ms=ended_at_ms,
        first_token_at_ms=(
            None if ttft_us is None else admitted.admitted_at_ms + max(0, ttft_us) // 1000
        ),
        prompt_tokens=totals.prompt,
        cached_prompt_tokens=totals.cached,
        output_tokens=totals.output,
        reasoning_tokens=totals.reasoning,
        sequences=admitted.sequences,
        queue_ms=admitted.queue_ms,
        ttft_ms=None if ttft_us is None else max(0, ttft_us) // 1000,
        tpot_us=_tpot_us(choices),
        itl_max_us=max((c.gap_us_max for c in choices if c.gap_us_max), default=None),
        outcome=outcome,
        finish_reason=_finish_reason(choices),
        usage_source=totals.source,
        usage_flags=totals.flags,
        worker_id=served[-1].worker.id if served and served[-1].worker is not None else None,
        billable=is_billable(outcome, totals.output),
        billing_policy=CURRENT_POLICY,
        attempts=tuple(attempts),
    )


def _tpot_us(choices: Sequence[Choice]) -> int | None:
    """(last token − first token) / (output tokens − 1), of the choice with the most tokens."""
    longest = max(
        (c for c in choices if c.first_token_us is not None),
        key=lambda c: c.usage.output_tokens if c.usage is not None else c.deltas,
        default=None,
    )
    if longest is None or longest.first_token_us is None or longest.last_token_us is None:
        return None
    tokens = longest.usage.output_tokens if longest.usage is not None else longest.deltas
    if tokens < 2:
        return None
    return (longest.last_token_us - longest.first_token_us) // (tokens - 1)


def _finish_reason(choices: Sequence[Choice]) -> str | None:
    reasons = sorted({c.finish_reason for c in choices if c.finish_reason is not None})
    return ",".join(reasons) or None
