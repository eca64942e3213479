"""What a check says: findings, each of which is wrong, and terms, each of which explains."""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from uuid import UUID

import msgspec


class Check(StrEnum):
    """The checks, by the names that DESIGN gives them."""

    JOURNALS = "REC-1"
    REQUESTS = "REC-2"
    ENGINES = "REC-3"
    ROLLUPS = "REC-4"
    INVOICES = "REC-5"
    ATTEMPTS = "REC-6"
    REPLAY = "REC-7"


TITLES = {
    Check.JOURNALS: "journals are whole in Postgres",
    Check.REQUESTS: "admitted = ended + live",
    Check.ENGINES: "engines' own counters = attempts + terms",
    Check.ROLLUPS: "roll-ups = records",
    Check.INVOICES: "invoices = records",
    Check.ATTEMPTS: "one counted attempt a choice",
    Check.REPLAY: "replay adds nothing",
}


class Finding(msgspec.Struct, frozen=True):
    """One thing that is wrong. `subject` is where (a gateway's journal, a worker, a quarter of an
    hour); `size` is how much, always above 0, in `unit`."""

    check: Check
    subject: str
    request_id: UUID | None
    """None where no single request is to blame, or nobody can say which."""
    size: int
    unit: str
    what: str


class Term(msgspec.Struct, frozen=True):
    """A difference that is accounted for, or what was compared."""

    name: str
    size: int


class Verdict(msgspec.Struct, frozen=True):
    """What one check says. `not_applicable` says why it compared nothing."""

    check: Check
    terms: tuple[Term, ...] = ()
    findings: tuple[Finding, ...] = ()
    not_applicable: str | None = None

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong, as far as it looked."""
        return not self.findings


def terms(**sizes: int) -> tuple[Term, ...]:
    """Terms by their names, in that order."""
    return tuple(Term(name, size) for name, size in sizes.items())


def skipped(check: Check, why: str) -> Verdict:
    """A check that had nothing to compare."""
    return Verdict(check, not_applicable=why)


def count_findings(verdicts: Iterable[Verdict]) -> int:
    """Of all checks together."""
    return sum(len(verdict.findings) for verdict in verdicts)


def added_up(check: Check, verdicts: Sequence[Verdict]) -> Verdict:
    """One check's verdicts on parts of what it looked at, as one."""
    sizes: dict[str, int] = {}
    for verdict in verdicts:
        for term in verdict.terms:
            sizes[term.name] = sizes.get(term.name, 0) + term.size
    found = tuple(finding for verdict in verdicts for finding in verdict.findings)
    return Verdict(check, terms(**sizes), found)


def verdict_view(verdict: Verdict) -> dict[str, object]:
    """A verdict as commands and the API show it."""
    return {
        "check": verdict.check.value,
        "title": TITLES[verdict.check],
        "ok": verdict.ok,
        "not_applicable": verdict.not_applicable,
        "terms": {term.name: term.size for term in verdict.terms},
        "findings_count": len(verdict.findings),
        "findings": [
            {
                "subject": finding.subject,
                "request_id": finding.request_id,
                "size": finding.size,
                "unit": finding.unit,
                "what": finding.what,
            }
            for finding in verdict.findings
        ],
    }
