from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from billing.domain.invoicing.membership import Place, Row, place_of
from billing.domain.invoicing.periods import month
from billing.domain.invoicing.usage_group import LineKind

INSTANT = timedelta(microseconds=1)
NOVEMBER = month("2026-11", "America/Los_Angeles")
OCTOBER = month("2026-10", "America/Los_Angeles")
ROW = Row(tenant_id="t", currency="USD", admitted_at=NOVEMBER.start, billable=True, final=True)
USAGE = Place(LineKind.USAGE, "2026-11")
LATE = Place(LineKind.ADJUSTMENT, "2026-10")


def place(row: Row, invoiced: tuple[str, ...] = ()) -> Place | None:
    return place_of(row, tenant_id="t", currency="USD", period=NOVEMBER, invoiced=invoiced)


def admitted(at: datetime) -> Row:
    return replace(ROW, admitted_at=at)


def test_v06_v10_a_record_of_the_last_instant_is_in_and_of_the_end_is_not() -> None:
    """Half-open: the whole last day counts, the first event of the next month does not."""
    assert place(admitted(NOVEMBER.start)) == USAGE
    assert place(admitted(NOVEMBER.end - timedelta(hours=9))) == USAGE
    assert place(admitted(NOVEMBER.end - INSTANT)) == USAGE
    assert place(admitted(NOVEMBER.end), ("2026-11", "2026-12")) is None


def test_v02_v09_the_tenants_calendar_decides_and_not_utcs() -> None:
    """In Los Angeles the evening of 30 November is 1 December in UTC, and is November's."""
    assert place(admitted(datetime(2026, 12, 1, 6, tzinfo=UTC))) == USAGE
    assert place(admitted(datetime(2026, 11, 1, 6, tzinfo=UTC)), ("2026-10",)) == LATE


def test_v11_a_record_is_in_the_month_of_its_arrival_alone() -> None:
    """However often and late it is written: what decides is the time in its id. On November's
    invoice it is on no other's, and December's does not have it again."""
    late = admitted(OCTOBER.end - INSTANT)
    assert place(late) is None
    october = place_of(late, tenant_id="t", currency="USD", period=OCTOBER, invoiced=())
    assert october == Place(LineKind.USAGE, "2026-10")
    on_it = replace(late, invoice="INV-2026-000001")
    assert place(on_it, ("2026-10",)) is None


def test_a_late_record_is_an_adjustment_of_its_own_month() -> None:
    """Once that month was invoiced; until then it waits for that month's own invoice."""
    late = admitted(OCTOBER.start)
    assert place(late, ("2026-10",)) == LATE
    assert place(late, ("2026-09",)) is None
    assert place(late) is None


def test_a_late_record_of_a_printed_period_is_an_adjustment_of_it() -> None:
    """Where the tenant's time zone was another then, and the record's month of now has no
    invoice; that month's own name comes first."""
    tokyo = month("2026-10", "Asia/Tokyo")

    def placed(row: Row, *invoiced: str) -> Place | None:
        return place_of(
            row, tenant_id="t", currency="USD", period=NOVEMBER, invoiced=invoiced, printed=[tokyo]
        )

    assert placed(admitted(tokyo.start), "2026-10") == LATE
    assert placed(admitted(tokyo.start), "2026-09") == Place(LineKind.ADJUSTMENT, "2026-09")
    assert placed(admitted(tokyo.start - INSTANT), "2026-10") is None


def test_v29_v30_what_is_on_an_invoice_is_on_no_other() -> None:
    """A second run of the same job finds nothing; after a void it is found again."""
    assert place(replace(ROW, invoice="INV-2026-000001")) is None
    assert place(replace(ROW, invoice=None)) == USAGE


@pytest.mark.parametrize(
    "other",
    [
        replace(ROW, billable=False),
        replace(ROW, final=False),
        replace(ROW, tenant_id="u"),
        replace(ROW, currency="EUR"),
    ],
)
def test_what_is_on_no_invoice_or_on_anothers(other: Row) -> None:
    """Neither in its month nor as an adjustment."""
    assert place(other, ("2026-10",)) is None
    assert place(replace(other, admitted_at=OCTOBER.start), ("2026-10",)) is None


def test_a_tenant_that_moves_loses_no_record_and_pays_none_twice() -> None:
    """From Los Angeles to Berlin after November was issued: nine hours of it are after December's
    beginning in Berlin, nine before November's. What was issued stays; of what comes late each is
    on December's once."""
    december = month("2026-12", "Europe/Berlin")
    late = admitted(NOVEMBER.end - INSTANT)
    found = place_of(late, tenant_id="t", currency="USD", period=december, invoiced=("2026-11",))
    assert found == Place(LineKind.USAGE, "2026-12")
    before = admitted(december.start - INSTANT)
    found = place_of(before, tenant_id="t", currency="USD", period=december, invoiced=("2026-11",))
    assert found == Place(LineKind.ADJUSTMENT, "2026-11")
