"""What becomes of an issued invoice: void, or paid."""

from datetime import date
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from billing.domain.invoicing.lifecycle import Status, paid, voided
from billing.postgres.invoice_rows import QUARTER, first_id
from billing.postgres.invoice_tables import invoice, invoice_quarter, invoice_row, payment
from billing.postgres.invoices import (
    StoredInvoice,
    StoredPayment,
    load_invoice,
    lock_tenant,
    store_time,
)

_columns = invoice.c


class ReferenceTaken(ValueError):
    """A payment or credit note of that reference is there, and says something else."""


class Voided(NamedTuple):
    """A void invoice; `is_new` where this call made it so."""

    invoice: StoredInvoice
    is_new: bool


class Paid(NamedTuple):
    """An invoice and a payment of it; `is_new` where this call noted it."""

    invoice: StoredInvoice
    payment: StoredPayment
    is_new: bool


async def void_invoice(
    connection: AsyncConnection, invoice_id: UUID, *, reason: str, by: str
) -> Voided:
    """Make an invoice void: it keeps its number and what is printed, and its records are free for
    the month's next one. Within the caller's transaction. Raises InvoiceNotFound, RefusedChange."""
    await lock_tenant(connection, (await load_invoice(connection, invoice_id)).tenant_id)
    known = await load_invoice(connection, invoice_id, lock=True)
    if voided(known.standing) == known.standing:
        return Voided(known, False)
    await connection.execute(
        update(invoice)
        .where(_columns.id == invoice_id)
        .values(
            status=Status.VOID.value,
            paid_at=None,
            voided_at=await store_time(connection),
            voided_by=by,
            void_reason=reason,
        )
    )
    await _free_rows(connection, invoice_id)
    return Voided(await load_invoice(connection, invoice_id), True)


async def note_payment(
    connection: AsyncConnection,
    invoice_id: UUID,
    *,
    amount_minor: int,
    received_on: date,
    reference: str,
    by: str,
) -> Paid:
    """Note a payment; the same one again (by its reference) is the one that is there. Within the
    caller's transaction. Raises InvoiceNotFound, RefusedChange, and ReferenceTaken."""
    known = await load_invoice(connection, invoice_id, lock=True)
    before = await _find_payment(connection, invoice_id, reference)
    if before is not None:
        if (before.amount_minor, before.received_on) != (amount_minor, received_on):
            raise ReferenceTaken(f"another payment of this invoice has the reference {reference}")
        return Paid(known, before, False)
    after = paid(known.standing, amount_minor)
    await connection.execute(
        insert(payment).values(
            invoice_id=invoice_id,
            amount_minor=amount_minor,
            received_on=received_on,
            reference=reference,
            noted_by=by,
        )
    )
    await settle(connection, known, after.status)
    noted = await _find_payment(connection, invoice_id, reference)
    assert noted is not None  # noqa: S101 - it was just written
    return Paid(await load_invoice(connection, invoice_id), noted, True)


async def settle(connection: AsyncConnection, known: StoredInvoice, status: Status) -> None:
    """Say that an invoice is paid, where by now it is."""
    if status is Status.PAID and known.status is Status.ISSUED:
        await connection.execute(
            update(invoice)
            .where(_columns.id == known.id)
            .values(status=status.value, paid_at=await store_time(connection))
        )


async def _free_rows(connection: AsyncConnection, invoice_id: UUID) -> None:
    """By the range of ids of each month that it has something of."""
    bucket = invoice_quarter.c.bucket
    months = (
        select(func.min(bucket), func.max(bucket))
        .where(invoice_quarter.c.invoice_id == invoice_id)
        .group_by(invoice_quarter.c.kind, invoice_quarter.c.month)
    )
    rows = invoice_row.c
    for first, last in (await connection.execute(months)).all():
        await connection.execute(
            update(invoice_row)
            .where(
                rows.invoice_id == invoice_id,
                ~rows.void,
                rows.request_id >= first_id(first),
                rows.request_id < first_id(last + QUARTER),
            )
            .values(void=True)
        )


async def _find_payment(
    connection: AsyncConnection, invoice_id: UUID, reference: str
) -> StoredPayment | None:
    names = StoredPayment.__struct_fields__
    row = (
        await connection.execute(
            select(*(payment.c[name] for name in names)).where(
                payment.c.invoice_id == invoice_id, payment.c.reference == reference
            )
        )
    ).one_or_none()
    return None if row is None else StoredPayment(**row._asdict())
