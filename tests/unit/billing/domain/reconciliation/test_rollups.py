"""REC-4, REC-5 and REC-7 on made-up figures, and verdicts that are put together."""

from datetime import UTC, datetime
from uuid import UUID

import pytest

from billing.domain.reconciliation.findings import Check, Term, Verdict, added_up, terms
from billing.domain.reconciliation.invoices import (
    Invoiced,
    Line,
    StrayRow,
    Unsealed,
    check_invoices,
)
from billing.domain.reconciliation.replay import Altered, Written, check_replay
from billing.domain.reconciliation.rollups import Difference, check_rollups

VALUES = {"requests": (2, 1), "output_tokens": (45, 40), "cost_pico": (9, 0)}
NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


def test_a_roll_up_that_differs_is_found_by_its_tokens() -> None:
    """The size is what differs most in tokens; a quarter that is marked is a term."""
    difference = Difference(
        NOON,
        "acme",
        "model=m",
        {"requests": (2, 1), "output_tokens": (45, 40), "cost_pico": (9, 0)},
    )
    verdict = check_rollups([difference], groups=3, dirty=frozenset())
    (finding,) = verdict.findings
    assert (finding.size, finding.unit) == (5, "output_tokens")
    assert finding.subject == "2026-11-30T12:00Z acme model=m"
    assert "requests 2 instead of 1" in finding.what
    marked = check_rollups([difference], groups=3, dirty=frozenset({(NOON, "acme")}))
    assert marked.ok
    assert Term("differ_meanwhile", 1) in marked.terms
    assert not check_rollups([difference], groups=3, dirty=frozenset({(NOON, "globex")})).ok


def test_an_invoices_lines_are_its_records() -> None:
    """Without invoices there is nothing to compare, which is said. A line, a request and a document
    are each named."""
    lines = [
        Line("2026-0001", "line 1", 100, 100, "tokens"),
        Line("2026-0001", "line 2", 7, 9, "USD"),
    ]
    request = UUID(int=1)
    found = Invoiced(
        invoices=1,
        requests=3,
        late=2,
        to_bill=4,
        unbilled=5,
        lines=lines,
        rows=[StrayRow("2026-0001", request, "its record is gone")],
        unsealed=[Unsealed("numbers INV-2026-", 4, "2 documents have numbers up to 6")],
    )
    verdict = check_invoices(found)
    assert [(each.subject, each.request_id, each.size, each.unit) for each in verdict.findings] == [
        ("numbers INV-2026-", None, 4, "documents"),
        ("invoice 2026-0001", request, 1, "requests"),
        ("invoice 2026-0001, line 2", None, 2, "USD"),
    ]
    assert verdict.terms == terms(invoices=1, requests=3, late=2, to_bill=4, unbilled=5)
    nothing = check_invoices(None)
    assert nothing.ok
    assert nothing.not_applicable == "no invoices"


def test_what_a_replay_writes_is_found_by_name() -> None:
    request = UUID(int=1)
    verdict = check_replay([Written(request, "gw-1", 32)], replayed=5, not_shipped=1)
    assert [(f.check, f.request_id, f.size) for f in verdict.findings] == [
        (Check.REPLAY, request, 32)
    ]
    assert check_replay([], replayed=5, not_shipped=0).ok


@pytest.mark.parametrize(
    ("column", "stored", "told", "size", "unit"),
    [
        ("prompt_tokens", "100012", "12", 100_000, "tokens"),
        ("ended_at", "1796040000250", "1796040000000", 250, "ms"),
        ("cost_pico", "9", "5", 4, "pico"),
        ("cost_pico", None, "5", 1, "records"),
        ("attempts", "1", "3", 2, "attempts"),
        ("api_key_id", "key-2", "key-1", 1, "records"),
        ("boot", "9", "7", 1, "records"),
    ],
)
def test_a_row_that_is_not_what_its_journal_says_is_found_by_its_column(
    column: str, stored: str | None, told: str, size: int, unit: str
) -> None:
    """With both values, and by how much they differ where they are amounts."""
    altered = Altered(UUID(int=1), "gw-1", column, stored, told)
    (finding,) = check_replay([altered], replayed=5, not_shipped=0).findings
    assert (finding.request_id, finding.size, finding.unit) == (UUID(int=1), size, unit)
    shown = "nothing" if stored is None else repr(stored)
    assert finding.what == f"{column} is {shown} in its row and {told!r} in its journal"


def test_verdicts_on_parts_add_up() -> None:
    one = Verdict(Check.ATTEMPTS, terms(records=2, attempts=3))
    other = Verdict(Check.ATTEMPTS, terms(records=1, taken_back=1))
    assert added_up(Check.ATTEMPTS, [one, other]).terms == terms(
        records=3, attempts=3, taken_back=1
    )
