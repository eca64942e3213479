"""What an ended request used: from what was seen of its streams to its usage record. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from billing.domain.policy import CURRENT_POLICY, is_billable
from billing.domain.usage_record import Outcome, UsageFlag, UsageRecord, UsageSource
from gateway.domain.hosted import HostedTarget
from gateway.domain.lease import Admitted
from gateway.serving.choice import Choice
from gateway.wire.assembly import usage_object
from gateway.wire.usage import COUNT_MAX, Usage


@dataclass(frozen=True)
class Totals:
    """Token counts of a request. A prompt counts once, however many choices it has."""

    prompt: int
    cached: int
    output: int
    reasoning: int
    source: UsageSource
    flags: tuple[UsageFlag, ...]


_TRUST = (
    UsageSource.ENGINE_FINAL,
    UsageSource.ENGINE_PROGRESS,
    UsageSource.COUNTED,
    UsageSource.ESTIMATED,
)


def count(
    choices: Sequence[Choice], prompt_counts: Sequence[int | None], *, has_media: bool = False
) -> Totals:
    """Add up what the engines said, and where they said nothing, what was seen.

    The source is that of the least trustworthy count that entered. `prompt_counts` are admission's
    counts of each prompt, None where they are not the engine's own: those are never recorded. What
    is recorded beyond them is flagged, but for media, which are in no count: no limit covered it.
    """
    output = sum(choice.output_tokens for choice in choices)
    said = [choice.usage for choice in choices if choice.usage is not None]
    reasoning = sum(usage.reasoning_tokens or 0 for usage in said)
    sources = [choice.source for choice in choices]
    flags = {flag for usage in said for flag in _marks(usage)}
    prompt = cached = 0
    for index, counted in enumerate(prompt_counts):
        known = _longest([choice for choice in choices if choice.prompt == index])
        if known is not None:
            prompt += known.prompt_tokens or 0
            cached += min(known.cached_tokens or 0, known.prompt_tokens or 0)
            if (known.cached_tokens or 0) > (known.prompt_tokens or 0):
                flags.add(UsageFlag.CACHED_OVER_PROMPT)
            if not has_media and counted is not None and (known.prompt_tokens or 0) > counted:
                flags.add(UsageFlag.PROMPT_OVER_COUNT)
        elif any(choice.began for choice in choices if choice.prompt == index):
            prompt += counted or 0
            sources.append(UsageSource.COUNTED)
            flags.add(UsageFlag.PROMPT_UNKNOWN if counted is None else UsageFlag.PROMPT_COUNTED)
    if any(choice.cut_short for choice in choices):
        flags.add(UsageFlag.CUT_SHORT)
    if any(choice.cached_is_unknown for choice in choices):
        flags.add(UsageFlag.CACHED_UNKNOWN)
    if any(choice.ended_oddly for choice in choices):
        flags.add(UsageFlag.FINISH_UNKNOWN)
    if reasoning > output:
        flags.add(UsageFlag.REASONING_OVER_OUTPUT)
        reasoning = output
    if max(prompt, output) > COUNT_MAX:
        flags.add(UsageFlag.COUNT_OUT_OF_RANGE)
        prompt, output = min(prompt, COUNT_MAX), min(output, COUNT_MAX)
        cached, reasoning = min(cached, prompt), min(reasoning, output)
    source = max(sources, key=_TRUST.index, default=UsageSource.ESTIMATED)
    return Totals(prompt, cached, output, reasoning, source, tuple(sorted(flags)))


def lacks_prompt(choices: Sequence[Choice], prompt_counts: Sequence[int | None]) -> bool:
    """Whether a prompt that was taken up is known neither by its engine's usage nor by a count."""
    return any(
        counted is None
        and _longest(of_prompt) is None
        and any(choice.began for choice in of_prompt)
        for counted, of_prompt in (
            (counted, [choice for choice in choices if choice.prompt == index])
            for index, counted in enumerate(prompt_counts)
        )
    )


def _longest(choices: Sequence[Choice]) -> Usage | None:
    """The usage that tells a prompt's tokens, of the choices that share it: one that was aborted
    in the engine's queue says 0."""
    said = [c.usage for c in choices if c.usage is not None and c.usage.prompt_tokens is not None]
    return max(said, key=lambda usage: usage.prompt_tokens or 0, default=None)


def _marks(usage: Usage) -> Iterator[UsageFlag]:
    """What is odd about one account, as a record flags it."""
    if usage.out_of_range:
        yield UsageFlag.COUNT_OUT_OF_RANGE
    if usage.inferred:
        yield UsageFlag.COUNT_INFERRED
    if usage.fell:
        yield UsageFlag.USAGE_FELL


def client_usage(record: UsageRecord, choices: Sequence[Choice]) -> dict[str, object]:
    """The usage object of an answer: the record's own counts."""
    reported = any(c.usage is not None and c.usage.cached_tokens is not None for c in choices)
    return usage_object(
        prompt_tokens=record.prompt_tokens,
        cached_tokens=record.cached_prompt_tokens if reported else None,
        output_tokens=record.output_tokens,
        reasoning_tokens=record.reasoning_tokens,
    )


def usage_record(
    admitted: Admitted,
    choices: Sequence[Choice],
    outcome: Outcome,
    *,
    prompt_counts: Sequence[int | None],
    arrival_us: int,
    ended_at_ms: int,
    has_media: bool = False,
    queue_ms: int = 0,
) -> UsageRecord:
    """The record of an ended request. `arrival_us` is on the monotonic clock, as choices' times;
    `queue_ms` is what it waited in all, also for a place after one was taken back."""
    if outcome is Outcome.REFUSED:
        totals = Totals(0, 0, 0, 0, UsageSource.ENGINE_FINAL, ())
    else:
        totals = count(choices, prompt_counts, has_media=has_media)
    firsts = [c.first_token_us for c in choices if c.first_token_us is not None]
    ttft_us = min(firsts) - arrival_us if firsts else None
    served = [choice.worker for choice in choices if choice.worker is not None]
    # Where any choice went to a hosted provider, the tenant's data went there.
    hosted = [worker for worker in served if isinstance(worker, HostedTarget)]
    server = (hosted or served or [None])[-1]
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
        queue_ms=max(queue_ms, admitted.queue_ms),
        ttft_ms=None if ttft_us is None else max(0, ttft_us) // 1000,
        tpot_us=_tpot_us(choices),
        itl_max_us=max((c.gap_us_max for c in choices if c.gap_us_max), default=None),
        outcome=outcome,
        finish_reason=_finish_reason(choices),
        usage_source=totals.source,
        usage_flags=totals.flags,
        provider="self" if server is None else server.provider,
        worker_id=None if server is None else server.id,
        billable=is_billable(outcome, totals.output),
        billing_policy=CURRENT_POLICY,
        attempts=tuple(attempts),
    )


def _tpot_us(choices: Sequence[Choice]) -> int | None:
    """(last token − first token) / (output tokens − 1), of the choice with the most tokens."""
    longest = max(
        (c for c in choices if c.first_token_us is not None),
        key=lambda c: c.output_tokens,
        default=None,
    )
    if longest is None or longest.first_token_us is None or longest.last_token_us is None:
        return None
    if longest.output_tokens < 2:
        return None
    return (longest.last_token_us - longest.first_token_us) // (longest.output_tokens - 1)


def _finish_reason(choices: Sequence[Choice]) -> str | None:
    reasons = sorted({c.finish_reason for c in choices if c.finish_reason is not None})
    return ",".join(reasons) or None
