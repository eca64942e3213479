"""INV-3 from the outside: tokens and requests in every trailing 60 s, by admission instant.

A request was admitted between its arrival at its gateway and its arrival at an engine. Only what
was *certainly* admitted within the same 60 s is added up, so no finding can be the clock's fault.
What counts of a request is what the engine ran for it:

- with `max_tokens` all of it, from its admission on, since its reservation is never less;
- without, all of it once it is settled (any excess over its reservation is by then a debt), and
  until then only its prompt and one token, the least that it reserved. So its own excess, and no
  one else's, may stand above the limit.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from storm.history import Finding, History, InForce, Row, Scope, shown

MINUTE_MS = 60_000
SETTLED_WITHIN_MS = 1_000
"""A settlement that the store did not take at once is repeated each quarter of a second."""


@dataclass(frozen=True)
class Charge:
    """What one admission took from a window, and when it can have been."""

    earliest_ms: int
    latest_ms: int
    amount: int
    at_first: int
    """Until `settled_ms`; less than `amount` only without a maximum."""
    settled_ms: int


def check_tokens(history: History) -> list[Finding]:
    """No trailing minute has more tokens than TPM, but for the own excess described above."""
    found = []
    for scope, limit, rows in history.by_scope(history.tokens):
        charges = _charges(history, rows, lambda row: _tokens(history, row))
        found += list(_above("tokens", scope, limit, charges))
    return found


def check_requests(history: History) -> list[Finding]:
    """No trailing minute has more requests that ran than RPM."""
    found = []
    for scope, limit, rows in history.by_scope(history.requests):
        charges = _charges(history, rows, lambda row: (1, 1))
        found += list(_above("requests", scope, limit, charges))
    return found


def engine_tokens(history: History, row: Row) -> int:
    """What an engine ran for a request: each prompt once, and all output."""
    spans = history.spans_of.get(row.request_id, [])
    output = sum(span.output_tokens for span in spans)
    longest = max((span.prompt_tokens for span in spans), default=0)
    return max(longest, row.prompt_tokens) + output


def _tokens(history: History, row: Row) -> tuple[int, int]:
    amount = engine_tokens(history, row)
    if history.has_maximum(row):
        return amount, amount
    spans = history.spans_of[row.request_id]
    return amount, min(amount, max(span.prompt_tokens for span in spans) + 1)


def _charges(
    history: History, rows: list[Row], amounts: Callable[[Row], tuple[int, int]]
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


def _above(rule: str, scope: Scope, limit: InForce, charges: list[Charge]) -> Iterator[Finding]:
    worst = 0.0
    for first in charges:
        since_ms = first.earliest_ms
        within = sorted(_within(charges, since_ms), key=lambda charge: charge.latest_ms)
        for used, earliest_ms, latest_ms in _growing(within):
            allowed = limit.most(earliest_ms, latest_ms)
            if used - allowed > worst:
                worst = used - allowed
                yield Finding(
                    rule,
                    shown(scope),
                    f"{used} within 60 s from {since_ms}, {allowed:.0f} allowed at {latest_ms}",
                )


def _growing(within: list[Charge]) -> Iterator[tuple[int, int, int]]:
    """After each admission: what is certainly charged, and between when and when that was."""
    used = earliest_ms = 0
    open_charges: list[Charge] = []
    for charge in within:
        earliest_ms = max(earliest_ms, charge.earliest_ms)
        used += charge.at_first
        if charge.at_first < charge.amount:
            open_charges.append(charge)
        # Whoever was admitted last may have come before this one was settled: only what was
        # settled before the earliest instant of the last admission is certainly a debt by then.
        settled = [c for c in open_charges if c.settled_ms + SETTLED_WITHIN_MS < earliest_ms]
        for each in settled:
            used += each.amount - each.at_first
            open_charges.remove(each)
        yield used, earliest_ms, charge.latest_ms


def _within(charges: list[Charge], since_ms: int) -> list[Charge]:
    """What was certainly admitted in the 60 s from then on."""
    until_ms = since_ms + MINUTE_MS
    return [c for c in charges if since_ms <= c.earliest_ms and c.latest_ms < until_ms]


def most_in_a_minute(history: History, scope: Scope) -> int:
    """The most tokens that certainly fell into one trailing minute of a scope."""
    rows = [row for row in history.rows if scope in row.scopes]
    charges = _charges(history, rows, lambda row: (engine_tokens(history, row),) * 2)
    minutes = (_within(charges, first.earliest_ms) for first in charges)
    return max((sum(charge.amount for charge in minute) for minute in minutes), default=0)
