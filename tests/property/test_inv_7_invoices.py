"""INV-7 over a year: an invoice is a function of records and prices, its lines check and sum to its
total, and what was issued never changes."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from invoice_audit import audit
from invoice_rows import group_of
from invoice_year import Year
from msgspec.structs import replace

from billing.domain.invoicing.document import canonical_bytes
from billing.domain.invoicing.lines import lines_of
from billing.domain.invoicing.membership import Place
from billing.domain.invoicing.periods import month_of_instant
from billing.domain.invoicing.totals import totals_of
from billing.domain.invoicing.usage_group import LineKind

ZONES = (
    "UTC",
    "Europe/Berlin",
    "Africa/Casablanca",
    "America/New_York",
    "America/Los_Angeles",
    "America/Havana",
    "America/St_Johns",
    "Asia/Kolkata",
    "Asia/Kathmandu",
    "Australia/Lord_Howe",
    "Pacific/Chatham",
    "Pacific/Kiritimati",
)
"""Havana's clocks fall back to midnight of 1 November 2026, Lord Howe's by half an hour; Chatham
and Kathmandu are at :45, Kiritimati 14 hours ahead."""
CHANCE = st.integers(0, 2**32 - 1).map(Random)
EACH_ZONE = pytest.mark.parametrize("zone", ZONES)
EACH_CURRENCY = pytest.mark.parametrize("currency", ["USD", "JPY", "KWD"])


@EACH_ZONE
@EACH_CURRENCY
@settings(max_examples=5, deadline=None)
@given(chance=CHANCE)
def test_inv_7_a_year_of_invoices_is_audited(zone: str, currency: str, chance: Random) -> None:
    """With prices that change in mid-month, late and provisional records, months that are skipped,
    voids and credit notes: an auditor who counts in fractions finds nothing."""
    year = Year(zone, currency, chance)
    year.go_by()
    audit(year)


@settings(max_examples=20, deadline=None)
@given(st.sampled_from(ZONES), st.sampled_from(["USD", "JPY", "KWD"]), CHANCE)
def test_v31_v32_what_was_issued_is_made_again_to_the_byte(
    zone: str, currency: str, chance: Random
) -> None:
    """From its records in any order, when the year is over: as many lines, the same bytes."""
    year = Year(zone, currency, chance)
    year.go_by()
    for invoice in year.invoices:
        document, rows = invoice.document, list(invoice.rows)
        chance.shuffle(rows)
        groups = []
        for row in rows:
            own = month_of_instant(row.admitted_at, zone).name
            usage = own == document.period.name
            kind = LineKind.USAGE if usage else LineKind.ADJUSTMENT
            groups.append(group_of(row, Place(kind, own)))
        lines = lines_of(groups, currency, year.tax)
        assert len(lines) == len(document.lines)
        again = replace(document, lines=lines, totals=totals_of(lines, [year.tax]))
        assert canonical_bytes(again) == invoice.content


@settings(max_examples=20, deadline=None)
@given(st.sampled_from(ZONES), st.sampled_from(["USD", "JPY", "KWD"]), CHANCE)
def test_v29_v30_closing_a_year_again_makes_nothing(
    zone: str, currency: str, chance: Random
) -> None:
    """Neither an invoice nor a line: every month has one, and no record is free."""
    year = Year(zone, currency, chance)
    year.go_by()
    before = len(year.invoices)
    for period in year.months:
        year.issue(period, year.invoices[-1].document.cut_off)
    assert len(year.invoices) == before
    audit(year)
