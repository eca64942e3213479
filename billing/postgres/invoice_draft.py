"""Drafts: what a month's invoice would be now, made anew as a whole each time."""

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import msgspec
from sqlalchemy import insert, select, text, update
from sqlalchemy.ext.asyncio import AsyncConnection

from billing.domain.invoicing.document import Document, canonical_bytes, content_hash
from billing.domain.invoicing.issuing import Billed, Blocker
from billing.domain.invoicing.lifecycle import Status
from billing.domain.invoicing.lines import lines_of
from billing.domain.invoicing.party import Seller
from billing.domain.invoicing.periods import Month, month
from billing.domain.invoicing.totals import totals_of
from billing.postgres.invoice_rows import Found, sum_rows
from billing.postgres.invoice_scope import Scope
from billing.postgres.invoice_tables import invoice
from billing.postgres.invoices import (
    StoredInvoice,
    find_invoice,
    load_invoice,
    lock_tenant,
    store_time,
)
from billing.postgres.sellers import load_seller
from billing.postgres.unbilled import find_unbilled

_columns = invoice.c


class Drafted(NamedTuple):
    """An invoice of that month: a draft, or what was made of it before."""

    invoice: StoredInvoice
    blockers: tuple[Blocker, ...]
    """What in its records would hold it up if it were issued now; empty where it is no draft."""
    is_new: bool


async def draft_invoice(
    connection: AsyncConnection, billed: Billed, month_name: str, *, by: str
) -> Drafted:
    """The invoice of a tenant's month in its currency: drafted, or drafted anew from what is
    there now. One that is issued or paid stays as it is.

    Within the caller's transaction, READ COMMITTED. However many ask at once, there is one. Raises
    InvalidPeriod, and LinesDisagree where records are not what their price makes.
    """
    period = month(month_name, billed.time_zone)
    scope = Scope(billed.customer.tenant_id, billed.currency, period)
    await lock_tenant(connection, scope.tenant_id)
    known = await find_invoice(connection, scope.tenant_id, scope.currency, period.name)
    if known is not None and known.status is not Status.DRAFT:
        return Drafted(known, (), False)
    cut_off = await store_time(connection)
    found = await sum_rows(connection, scope)
    seller = await load_seller(connection)
    invoice_id = await _new_id(connection) if known is None else known.id
    document = document_of(invoice_id, billed, period, found, seller=seller, cut_off=cut_off)
    values = {**columns_of(document, found), "drafted_at": cut_off, "drafted_by": by}
    if known is None:
        named = {"id": invoice_id, "tenant_id": scope.tenant_id, "currency": scope.currency}
        await connection.execute(insert(invoice).values(**named, month=period.name, **values))
    else:
        change = update(invoice).where(_columns.id == invoice_id)
        await connection.execute(change.values(**values))
    drafted = await load_invoice(connection, invoice_id)
    in_the_way = (*found.blockers, *await find_unbilled(connection, scope))
    return Drafted(drafted, in_the_way, known is None)


def document_of(
    invoice_id: UUID,
    billed: Billed,
    period: Month,
    found: Found,
    *,
    seller: Seller | None,
    cut_off: datetime,
) -> Document:
    """What is printed of these records; without number and dates, as a draft. Raises
    LinesDisagree."""
    lines = lines_of(found.groups, billed.currency, billed.tax)
    return Document(
        invoice_id=str(invoice_id),
        number=None,
        currency=billed.currency,
        issued_at=None,
        issued_on=None,
        due_on=None,
        seller=seller,
        customer=billed.customer,
        period=period,
        lines=lines,
        totals=totals_of(lines, [billed.tax]),
        row_count=sum(group.requests for group in found.groups),
        cut_off=cut_off,
        notes=(*billed.notes, *found.notes),
    )


def columns_of(document: Document, found: Found) -> dict[str, object]:
    """What is kept of a document beside it, for queries."""
    totals, period = document.totals, document.period
    return {
        "time_zone": period.time_zone,
        "period_start": period.start,
        "period_end": period.end,
        "subtotal_minor": totals.subtotal_minor,
        "tax_minor": totals.total_minor - totals.subtotal_minor,
        "total_minor": totals.total_minor,
        "row_count": document.row_count,
        "cost_pico": sum(group.cost_pico for group in found.groups),
        "cut_off": document.cut_off,
        "document": canonical_bytes(document),
        "content_hash": content_hash(document),
    }


async def _new_id(connection: AsyncConnection) -> UUID:
    made = await connection.scalar(select(text("uuidv7()")))
    return msgspec.convert(str(made), UUID)
