"""REC-1: every number of every journal is in Postgres, and every end among them is a row."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID

from billing.domain.reconciliation.findings import Check, Finding, Verdict, terms

_RECORDS = "journal records"
_REQUESTS = "requests"


@dataclass(frozen=True, kw_only=True)
class Boot:
    """One boot of a gateway's journal: its watermark, and what Postgres holds of it."""

    boot: int
    seq: int = 0
    """The watermark: all numbers up to it are said to be in Postgres."""
    admitted: int = 0
    ended: int = 0
    missing: int = 0
    rows: int | None = None
    """Usage records that name this boot as where they come from; None where nobody counted."""
    letters: int = 0
    """Dead letters that wait."""
    resolved: int = 0
    """Dead letters that were resolved without a row, as one that proved to be an admission."""
    illegible: int = 0
    """Entries that nobody could read, dead letters too: counted as ends, each may be an
    admission."""
    late: int = 0
    """Ends that came after their requests' rows had become final by another way: items, no rows."""
    told_twice: int = 0
    """Those of them whose row names another place of the same journal: counted as ends there."""
    last_row_seq: int = 0
    durable_seq: int = 0
    """The last number that was heard to be on its disk; 0 where nobody heard."""
    open_count: int = 0
    """Requests that were open then."""


@dataclass(frozen=True, kw_only=True)
class GatewayJournal:
    """A gateway's journal, with all its boots."""

    gateway_id: str
    boots: Sequence[Boot]
    is_gone: bool = False
    """Not seen for longer than its requests can wait for it, and not by an orderly end."""
    told_by_others: int = 0
    """Rows of its requests that another gateway wrote from their second copies, and of which it
    has given no account of its own: none that took their place, none that came too late."""
    without_place: int = 0
    """Rows whose account it gave by another way than its journal, which has not told their end."""
    of_older: int = 0
    """Those of them that an older release sent, of which nothing says whether the journal told
    their end too: so many ends that have no row of their own may be theirs."""
    is_older: bool = False
    """It was last seen before the period: what it never shipped was found then."""


@dataclass(frozen=True)
class NumberGap:
    """Numbers that a disk has lost, both ends included."""

    gateway_id: str
    boot: int
    first_seq: int
    last_seq: int


@dataclass(frozen=True)
class Letter:
    """A record that Postgres refused and that waits for a person; `tokens` where it is legible."""

    id: int
    gateway_id: str
    source: str
    request_id: UUID | None
    reason: str
    tokens: int | None


@dataclass(frozen=True)
class Lost:
    """A request that is known to have ended and has no row. `told_by` is who knows of it."""

    request_id: UUID
    gateway_id: str
    tokens: int
    told_by: str


@dataclass(frozen=True)
class Tail:
    """What of a gone gateway's journal never came: how many numbers, and how many requests those
    ended or left open, which is what its heartbeats said."""

    records: int
    requests: int


def check_journals(
    journals: Sequence[GatewayJournal],
    *,
    gaps: Sequence[NumberGap] = (),
    letters: Sequence[Letter] = (),
    lost: Sequence[Lost] = (),
    late_tokens: int = 0,
) -> Verdict:
    """REC-1 of all journals. `lost` names requests; where there are any, they are found beside the
    numbers that say how many there must be."""
    boots = [boot for journal in journals for boot in journal.boots]
    tails = {journal.gateway_id: tail_of(journal) for journal in journals}
    gone = {journal.gateway_id for journal in journals if journal.is_gone}
    findings = [
        *(finding for journal in journals for finding in _of_journal(journal)),
        *map(_of_gap, gaps),
        *map(_of_letter, letters),
        *map(_of_lost, lost),
    ]
    return Verdict(
        Check.JOURNALS,
        terms(
            records=sum(boot.seq for boot in boots),
            ends=sum(boot.ended for boot in boots),
            rows=sum(boot.rows or 0 for boot in boots),
            not_shipped_yet=sum(t.records for name, t in tails.items() if name not in gone),
            lost_before=sum(tails[j.gateway_id].records for j in journals if _is_told(j)),
            resolved_without_row=sum(boot.resolved for boot in boots),
            told_by_others=sum(journal.told_by_others for journal in journals),
            told_after_finality=sum(boot.late for boot in boots),
            told_after_finality_tokens=late_tokens,
            without_place=sum(journal.without_place for journal in journals),
            sent_by_older=sum(sum(_theirs(journal).values()) for journal in journals),
        ),
        tuple(findings),
    )


def _is_told(journal: GatewayJournal) -> bool:
    return journal.is_gone and journal.is_older


def tail_of(journal: GatewayJournal) -> Tail:
    """What is behind its watermarks.

    Of the numbers behind a watermark, a are admissions and e ends. Their sum is known, and so is
    a − e: by how much more requests were open at the end than at the watermark. What a boot leaves
    open the next one ends, in its own numbers: how many were open is told over all of them.
    """
    records = ends = 0
    open_then = sum(_theirs(journal).values()) - journal.without_place
    for boot in sorted(journal.boots, key=lambda each: each.boot):
        open_then += boot.admitted - boot.ended + boot.told_twice
        behind = boot.durable_seq - boot.seq
        if behind <= 0:
            continue
        records += behind
        ends += max(0, (behind - (boot.open_count - open_then)) // 2)
        open_then = boot.open_count
    requests = ends + max(0, open_then) if records else 0
    return Tail(records, requests)


def _lacking(boot: Boot) -> int:
    """How many more ends than rows there are; 0 where nobody counted."""
    if boot.rows is None:
        return 0
    return boot.ended - boot.rows - boot.letters - boot.resolved - boot.late


def _theirs(journal: GatewayJournal) -> dict[int, int]:
    """Of each boot, how many ends without a row are those of rows that an older release sent."""
    left, found = journal.of_older, {}
    for boot in journal.boots:
        found[boot.boot] = min(left, max(0, _lacking(boot)))
        left -= found[boot.boot]
    return found


def _of_journal(journal: GatewayJournal) -> Iterator[Finding]:
    theirs = _theirs(journal)
    for boot in journal.boots:
        subject = f"{journal.gateway_id}/{boot.boot}"
        if boot.rows is not None:
            lacking = _lacking(boot) - theirs[boot.boot]
            if lacking > 0:
                yield _finding(subject, lacking, "usage records", "ended, and has no row")
            elif lacking < 0:
                yield _finding(subject, -lacking, "usage records", "more rows than ends")
        if boot.last_row_seq > boot.seq:
            yield _finding(
                subject, boot.last_row_seq - boot.seq, _RECORDS, "rows beyond its watermark"
            )
    if journal.is_gone and not journal.is_older:
        tail = tail_of(journal)
        lacking = tail.requests - journal.told_by_others
        if tail.records and lacking > 0:
            yield _finding(
                journal.gateway_id,
                lacking,
                _REQUESTS,
                f"the gateway is gone and {tail.records} numbers of its journal never came;"
                f" nobody else told of these requests",
            )


def _of_gap(gap: NumberGap) -> Finding:
    return _finding(
        f"{gap.gateway_id}/{gap.boot}",
        gap.last_seq - gap.first_seq + 1,
        _RECORDS,
        f"its disk has lost numbers {gap.first_seq} to {gap.last_seq}",
    )


def _of_letter(letter: Letter) -> Finding:
    return Finding(
        Check.JOURNALS,
        f"dead letter {letter.id} of {letter.gateway_id}, {letter.source}",
        letter.request_id,
        letter.tokens or 1,
        "tokens" if letter.tokens else "usage records",
        f"Postgres refused it ({letter.reason}) and nobody has resolved it",
    )


def _of_lost(lost: Lost) -> Finding:
    return Finding(
        Check.JOURNALS,
        lost.gateway_id,
        lost.request_id,
        max(1, lost.tokens),
        "tokens" if lost.tokens else "requests",
        f"ended, and has no row; {lost.told_by} knows of it",
    )


def _finding(subject: str, size: int, unit: str, what: str) -> Finding:
    return Finding(Check.JOURNALS, subject, None, size, unit, what)
