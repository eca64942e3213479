"""REC-6: of the attempts of each choice one counts, and these make up the record."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from billing.domain.policy import PolicyRow
from billing.domain.reconciliation.findings import Check, Finding, Verdict, terms
from billing.domain.usage_record import Outcome, UsageSource

_TRIED_AGAIN = frozenset(
    {Outcome.WORKER_FAILED, Outcome.TIMED_OUT, Outcome.REFUSED, Outcome.TAKEN_BACK}
)
"""How an attempt ends that is followed by another: it does not count."""
_NOTHING_COUNTS = frozenset({Outcome.REFUSED, Outcome.GATEWAY_LOST})
"""Of these a record has what its gateway last knew, or nothing at all."""
_COUNTED_OTHERWISE = frozenset({"count_out_of_range"})
"""Flags of records whose counts are not the sum of their attempts'."""
_PROMPT_COUNTED_OTHERWISE = frozenset({"prompt_counted", "prompt_unknown"})
"""And of those of whose prompt an engine told nothing."""


@dataclass(frozen=True)
class Try:
    """An attempt as it lies in Postgres."""

    choice: int
    attempt: int
    outcome: str
    prompt_tokens: int
    output_tokens: int
    cached_prompt_tokens: int | None = None
    """None where nobody said."""

    @property
    def cached_at_most(self) -> int:
        """No more is cached than the prompt has."""
        return min(self.cached_prompt_tokens or 0, self.prompt_tokens)


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A record as it lies in Postgres, with its attempts."""

    request_id: UUID
    tenant_id: str
    outcome: str
    prompt_tokens: int
    cached_prompt_tokens: int
    output_tokens: int
    usage_source: str
    usage_flags: Sequence[str] = ()
    attempts: int
    """How many the record says there were."""
    billable: bool
    billing_policy: int
    tries: Sequence[Try] = field(default=())


def check_attempts(
    records: Sequence[Judged], policies: Mapping[int, Mapping[str, PolicyRow]]
) -> Verdict:
    """REC-6 of these records."""
    findings = [finding for record in records for finding in _of_record(record, policies)]
    tries = [(record, each) for record in records for each in record.tries]
    counted = sum(len(_counted(record)) for record in records)
    return Verdict(
        Check.ATTEMPTS,
        terms(
            records=len(records),
            attempts=len(tries),
            counted=counted,
            tried_elsewhere=len(tries)
            - counted
            - sum(each.outcome == Outcome.TAKEN_BACK for _, each in tries),
            taken_back=sum(each.outcome == Outcome.TAKEN_BACK for _, each in tries),
            without_attempts=sum(not record.tries for record in records),
        ),
        tuple(findings),
    )


def _by_choice(record: Judged) -> dict[int, list[Try]]:
    by_choice: dict[int, list[Try]] = defaultdict(list)
    for each in sorted(record.tries, key=lambda each: each.attempt):
        by_choice[each.choice].append(each)
    return by_choice


def _counted(record: Judged) -> list[Try]:
    """The last of each choice; none where that gave its place back and got no other."""
    return [
        tries[-1]
        for tries in _by_choice(record).values()
        if tries[-1].outcome != Outcome.TAKEN_BACK
    ]


def _of_record(
    record: Judged, policies: Mapping[int, Mapping[str, PolicyRow]]
) -> Iterator[Finding]:
    if record.attempts != len(record.tries):
        yield _finding(
            record,
            abs(record.attempts - len(record.tries)),
            "attempts",
            f"the record says {record.attempts} attempts, and there are {len(record.tries)}",
        )
    for choice, tries in _by_choice(record).items():
        for each in tries[:-1]:
            if each.outcome not in _TRIED_AGAIN:
                yield _finding(
                    record,
                    max(1, each.output_tokens),
                    "tokens" if each.output_tokens else "attempts",
                    f"two attempts of choice {choice} count: {each.attempt} ended as"
                    f" {each.outcome}, and {tries[-1].attempt} came after it",
                )
    yield from _of_sum(record)
    yield from _of_verdict(record, policies)


def _of_sum(record: Judged) -> Iterator[Finding]:
    if record.outcome in _NOTHING_COUNTS or _COUNTED_OTHERWISE & set(record.usage_flags):
        return
    counted = _counted(record)
    if not record.tries:
        if record.billable or record.output_tokens:
            yield _finding(
                record, max(1, record.output_tokens), "tokens", "no attempt of it counts"
            )
        return
    total = sum(each.output_tokens for each in counted)
    # Its place was taken back and its client left at once: what came until then was dropped.
    dropped = record.output_tokens == 0 and record.usage_source == UsageSource.ESTIMATED
    if total != record.output_tokens and not dropped:
        yield _finding(
            record,
            abs(total - record.output_tokens),
            "tokens",
            f"the record says {record.output_tokens} output tokens, what counts of its attempts"
            f" {total}",
        )
    yield from _of_prompt(record, counted)


def _of_prompt(record: Judged, counted: Sequence[Try]) -> Iterator[Finding]:
    """A prompt that choices share counts once, as the one says that says most: with one choice it
    is that one's, with several it lies between the most and the sum."""
    told = [each for each in counted if each.prompt_tokens]
    is_counted_otherwise = _PROMPT_COUNTED_OTHERWISE & set(record.usage_flags)
    if not told or is_counted_otherwise or record.usage_source == UsageSource.ESTIMATED:
        return
    prompts = [each.prompt_tokens for each in told]
    yield from _outside(record, "prompt", record.prompt_tokens, max(prompts), sum(prompts))
    if all(each.cached_prompt_tokens is not None for each in told):
        cached = [each.cached_at_most for each in told]
        yield from _outside(
            record, "cached prompt", record.cached_prompt_tokens, min(cached), sum(cached)
        )


def _outside(record: Judged, name: str, said: int, least: int, most: int) -> Iterator[Finding]:
    nearest = min(max(said, least), most)
    if said != nearest:
        yield _finding(
            record,
            abs(said - nearest),
            "tokens",
            f"the record says {said} {name} tokens, what counts of its attempts"
            f" {least if least == most else f'{least} to {most}'}",
        )


def _of_verdict(
    record: Judged, policies: Mapping[int, Mapping[str, PolicyRow]]
) -> Iterator[Finding]:
    row = policies.get(record.billing_policy, {}).get(record.outcome)
    if row is None:
        what = f"no policy {record.billing_policy} says whether {record.outcome} is paid for"
        yield _finding(record, 1, "records", what)
        return
    billable = row.with_output if record.output_tokens > 0 else row.without_output
    if billable != record.billable:
        yield _finding(
            record,
            max(1, record.output_tokens),
            "tokens" if record.output_tokens else "records",
            f"it is {'' if record.billable else 'not '}billed, and policy {record.billing_policy}"
            f" says otherwise of {record.outcome}",
        )


def _finding(record: Judged, size: int, unit: str, what: str) -> Finding:
    return Finding(Check.ATTEMPTS, record.tenant_id, record.request_id, size, unit, what)
