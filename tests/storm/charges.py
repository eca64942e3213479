"""What admissions took from a limit over time, and whether more was taken than allowed.

A request was admitted between its arrival at its gateway and its arrival at an engine. Only what
was *certainly* admitted within the same window is added up, so no finding can be the clock's fault.
What counts of a request is what the engine ran for it:

- with `max_tokens` all of it, from its admission on, since its reservation is never less;
- without, all of it once it is settled (any excess over its reservation is by then a debt), and
  until then only its prompt and one token, the least that it reserved. So its own excess, and no
  one else's, may stand above the limit.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from storm.history import Finding, History, InForce, Row, Scope, shown

SETTLED_WITHIN_MS = 1_000
"""A settlement that the store did not take at once is repeated each quarter of a second."""


@dataclass(frozen=True)
class Charge:
    """What one admission took, and when it can have been."""

    earliest_ms: int
    latest_ms: int
    amount: int
    at_first: int
    """Until `settled_ms`; less than `amount` only without a maximum."""
    settled_ms: int


def engine_tokens(history: History, row: Row) -> int:
    """What an engine ran for a request: each prompt once, and all output."""
    spans = history.spans_of.get(row.request_id, [])
    output = sum(span.output_tokens for span in spans)
    longest = max((span.prompt_tokens for span in spans), default=0)
    return max(longest, row.prompt_tokens) + output


def certain_tokens(history: History, row: Row) -> tuple[int, int]:
    """Tokens that a request took in the end, and at first. An engine has run it."""
    amount = engine_tokens(history, row)
    if history.has_maximum(row):
        return amount, amount
    spans = history.spans_of[row.request_id]
    return amount, min(amount, max(span.prompt_tokens for span in spans) + 1)


def charges_of(
    history: History, rows: Sequence[Row], amounts: Callable[[Row], tuple[int, int]]
) -> list[Charge]:
    """Of what an engine was asked to run; what was not sent to any is given back."""
    charges = []
    for row in rows:
        spans = history.spans_of.get(row.request_id)
        if spans:
            amount, at_first = amounts(row)
            sent_ms = max(row.admitted_ms, min(span.queued_ms for span in spans))
            charges.append(Charge(row.admitted_ms, sent_ms, amount, at_first, row.ended_ms))
    return charges


def above(
    rule: str, scope: Scope, limit: InForce, charges: Sequence[Charge], *, window_ms: int
) -> Iterator[Finding]:
    """Each window in which more was taken than allowed, and than in the worst one before it."""
    worst = 0.0
    for first in charges:
        since_ms = first.earliest_ms
        together = within(charges, since_ms, window_ms)
        for used, earliest_ms, latest_ms in _growing(together):
            allowed = limit.most(earliest_ms, latest_ms)
            if used - allowed > worst:
                worst = used - allowed
                yield Finding(
                    rule,
                    shown(scope),
                    f"{used} in the {window_ms} ms from {since_ms}, {allowed:.0f} allowed at "
                    f"{latest_ms}",
                )


def within(charges: Sequence[Charge], since_ms: int, window_ms: int) -> list[Charge]:
    """What was certainly admitted in a window, in the order of when it was at the latest."""
    until_ms = since_ms + window_ms
    found = [c for c in charges if since_ms <= c.earliest_ms and c.latest_ms < until_ms]
    return sorted(found, key=lambda charge: charge.latest_ms)


def _growing(together: list[Charge]) -> Iterator[tuple[int, int, int]]:
    """After each admission: what is certainly charged, and between when and when that was."""
    used = earliest_ms = 0
    unsettled: list[Charge] = []
    for charge in together:
        earliest_ms = max(earliest_ms, charge.earliest_ms)
        used += charge.at_first
        if charge.at_first < charge.amount:
            unsettled.append(charge)
        # Whoever was admitted last may have come before this one was settled: only what was
        # settled before the earliest instant of the last admission is certainly a debt by then.
        settled = [c for c in unsettled if c.settled_ms + SETTLED_WITHIN_MS < earliest_ms]
        for each in settled:
            used += each.amount - each.at_first
            unsettled.remove(each)
        yield used, earliest_ms, charge.latest_ms
