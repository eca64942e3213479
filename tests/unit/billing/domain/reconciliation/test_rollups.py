"""REC-4, REC-5 and REC-7 on made-up figures, and verdicts that are put together."""

from datetime import UTC, datetime
from uuid import UUID

from billing.domain.reconciliation.findings import Check, Term, Verdict, added_up, terms
from billing.domain.reconciliation.invoices import Line, check_invoices
from billing.domain.reconciliation.replay import Written, check_replay
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
    """Without invoices there is nothing to compare, which is said."""
    lines = [
        Line("2026-0001", "line 1", 100, 100, "tokens"),
        Line("2026-0001", "line 2", 7, 9, "USD"),
    ]
    (finding,) = check_invoices(lines).findings
    assert (finding.subject, finding.size, finding.unit) == ("invoice 2026-0001, line 2", 2, "USD")
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


def test_verdicts_on_parts_add_up() -> None:
    one = Verdict(Check.ATTEMPTS, terms(records=2, attempts=3))
    other = Verdict(Check.ATTEMPTS, terms(records=1, taken_back=1))
    assert added_up(Check.ATTEMPTS, [one, other]).terms == terms(
        records=3, attempts=3, taken_back=1
    )
