"""INV-2 by the engines' own clock: who ran when, counted for each scope.

A lease is held before its request is sent and until after its engine ended it, so what an engine
runs is at every instant at most what was leased; and when the last of those that run together was
admitted, all the others held their leases already. The limit in force at that admission bounds
them. The admission lies between the request's arrival at the gateway and at the engine.

What a killed gateway leaves running is forgiven nothing. Its engine notices the dropped connection
and ends the sequence long before the lease lapses; a sequence that runs on is a finding of its own
(*outlived*), and as long as it runs it counts against the limit like any other. (An engine that
does not notice would show as both. That is the one excess that INV-2 knows: a stream that outlives
its lapsed lease.)
"""

from collections.abc import Iterator
from dataclasses import dataclass

from storm.history import LOST, Finding, History, InForce, Row, Scope, Span, shown

OUTLIVED_MS_MAX = 3_000
"""An engine notices a dropped connection within a second; three times that."""


@dataclass(frozen=True)
class _Running:
    """A sequence, and when its request can have been admitted."""

    started_ms: int
    ended_ms: int
    earliest_ms: int
    latest_ms: int
    request_id: str


def check_sequences(history: History) -> list[Finding]:
    """No instant has more sequences than the limit; nobody's who was killed run on."""
    found = []
    for scope, limit, rows in history.by_scope(history.sequences):
        running = [each for row in rows for each in _sequences(row, history)]
        found += list(_above(scope, limit, running))
    return found + list(_outlived(history))


def peak(history: History, scope: Scope) -> int:
    """The most sequences that ran in a scope at once."""
    rows = [row for row in history.rows if scope in row.scopes]
    running = [each for row in rows for each in _sequences(row, history)]
    return max((len(_beside(each, running)) for each in running), default=0)


def _sequences(row: Row, history: History) -> Iterator[_Running]:
    spans = history.spans_of.get(row.request_id, [])
    sent_ms = min((span.queued_ms for span in spans), default=row.ended_ms)
    for span in spans:
        if span.started_ms is not None:
            yield _Running(span.started_ms, span.ended_ms, row.admitted_ms, sent_ms, row.request_id)


def _beside(one: _Running, running: list[_Running]) -> list[_Running]:
    """All that run when it starts, itself included."""
    at_ms = one.started_ms
    return [each for each in running if each.started_ms <= at_ms < each.ended_ms]


def _above(scope: Scope, limit: InForce, running: list[_Running]) -> Iterator[Finding]:
    """The count grows only where one starts, so only there can it be too high."""
    worst = 0.0
    for one in running:
        together = _beside(one, running)
        earliest_ms = max((each.earliest_ms for each in together), default=one.earliest_ms)
        latest_ms = max((each.latest_ms for each in together), default=one.latest_ms)
        allowed = limit.most(earliest_ms, latest_ms)
        if len(together) - allowed > worst:
            worst = len(together) - allowed
            who = sorted({each.request_id for each in together})
            yield Finding(
                "sequences",
                shown(scope),
                f"{len(together)} ran at {one.started_ms}, {allowed:.0f} allowed: {who}",
            )


def _outlived(history: History) -> Iterator[Finding]:
    for row in history.rows:
        killed_ms = history.killed_after(row)
        if row.outcome != LOST or killed_ms is None:
            continue
        for span in history.spans_of.get(row.request_id, []):
            over_ms = span.ended_ms - killed_ms
            if over_ms > OUTLIVED_MS_MAX:
                yield Finding(
                    "outlived", row.tenant, f"{row.request_id} ran {over_ms} ms after its gateway"
                )


def unaccounted(history: History) -> list[Span]:
    """Sequences of requests without a record: nobody can say whose they were."""
    return [span for span in history.spans if span.request_id not in history.row_of]
