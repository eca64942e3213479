"""Which records an invoice has, and why: decided by their instants, never by when they came."""

from collections.abc import Container, Iterable
from datetime import datetime

import msgspec

from billing.domain.invoicing.periods import Month, month_of_instant
from billing.domain.invoicing.usage_group import LineKind


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """What decides it of a usage record."""

    tenant_id: str
    currency: str
    admitted_at: datetime
    billable: bool
    final: bool
    invoice: str | None = None
    """The invoice, not void, that it is on already."""


class Place(msgspec.Struct, frozen=True):
    """Where on an invoice a record goes."""

    kind: LineKind
    month: str
    """As `2026-11`, by the tenant's calendar."""


def place_of(
    row: Row,
    *,
    tenant_id: str,
    currency: str,
    period: Month,
    invoiced: Container[str],
    printed: Iterable[Month] = (),
) -> Place | None:
    """Where a record goes on the invoice of a tenant, currency and period, or None.

    It goes there as usage when admitted in the period, and as an adjustment when admitted before it
    in a month that is in `invoiced`: the names of months with an invoice in this currency that is
    issued or paid. A month that never had one keeps its records for its own. Months of records are
    those of the period's time zone, which is the tenant's now. `printed` are the periods of those
    invoices as they were issued, the earliest first: after a change of the time zone they may have
    a record whose month of now was never invoiced.
    """
    if not (row.billable and row.final) or row.invoice is not None:
        return None
    if row.tenant_id != tenant_id or row.currency != currency:
        return None
    if row.admitted_at in period:
        return Place(LineKind.USAGE, period.name)
    if row.admitted_at >= period.end:
        return None
    own = month_of_instant(row.admitted_at, period.time_zone)
    if own.name in invoiced:
        return Place(LineKind.ADJUSTMENT, own.name)
    covering = (each.name for each in printed if row.admitted_at in each)
    name = next(covering, None)
    return None if name is None else Place(LineKind.ADJUSTMENT, name)
