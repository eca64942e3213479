"""What the invoices of a tenant or a month come to together, each currency for itself."""

from typing import NamedTuple

import msgspec
from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from billing.domain.invoicing.lifecycle import Status
from billing.postgres.invoice_tables import credit_note, invoice, payment
from billing.postgres.invoices import InvoiceFilter

_columns = invoice.c


class Sums(NamedTuple):
    """Of invoices of one currency and status, in minor units; `outstanding_minor` is what is still
    owed, which nothing that was overpaid makes less."""

    currency: str
    status: Status
    invoices: int
    total_minor: int
    paid_minor: int
    credited_minor: int
    outstanding_minor: int


async def sum_invoices(connection: AsyncConnection, wanted: InvoiceFilter) -> list[Sums]:
    """By currency and status. It reads every invoice that is wanted: name a tenant or a month."""
    paid = (
        select(func.coalesce(func.sum(payment.c.amount_minor), 0))
        .where(payment.c.invoice_id == _columns.id)
        .scalar_subquery()
    )
    credited = (
        select(func.coalesce(func.sum(credit_note.c.total_minor), 0))
        .where(credit_note.c.invoice_id == _columns.id)
        .scalar_subquery()
    )
    each = select(
        _columns.currency,
        _columns.status,
        _columns.total_minor,
        paid.label("paid"),
        credited.label("credited"),
    )
    for field in msgspec.structs.fields(InvoiceFilter):
        value = getattr(wanted, field.name)
        if value is not None:
            each = each.where(_columns[field.name] == value)
    one = each.subquery().c
    rows = await connection.execute(
        select(
            one.currency,
            one.status,
            func.count(),
            func.sum(one.total_minor),
            func.sum(one.paid),
            func.sum(one.credited),
            func.sum(func.greatest(one.total_minor - one.paid - one.credited, 0)),
        )
        .group_by(one.currency, one.status)
        .order_by(one.currency, one.status)
    )
    return [
        Sums(currency, Status(status), invoices, *(int(figure) for figure in figures))
        for currency, status, invoices, *figures in rows
    ]
