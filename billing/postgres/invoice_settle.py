"""What becomes of an issued invoice: void, or paid, or open again once a payment is taken back."""

from datetime import date
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import ColumnElement, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from billing.domain.invoicing.lifecycle import (
    RefusedChange,
    Status,
    check_received,
    paid,
    taken_back,
    voided,
)
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
_PAYMENT = [payment.c[name] for name in StoredPayment.__struct_fields__]


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


class PaymentNotFound(LookupError):
    """The invoice has no payment of that id or reference."""


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
    may_overpay: bool = False,
    by: str,
) -> Paid:
    """Note a payment; the same one again (by its reference) is the one that is there. Within the
    caller's transaction. Raises InvoiceNotFound, RefusedChange, as for one of more than what is
    outstanding unless it `may_overpay`, WrongDay, and ReferenceTaken, also where that payment was
    taken back."""
    known = await load_invoice(connection, invoice_id, lock=True)
    before = await _find_payment(connection, invoice_id, payment.c.reference == reference)
    if before is not None:
        if (before.amount_minor, before.received_on) != (amount_minor, received_on):
            raise ReferenceTaken(f"another payment of this invoice has the reference {reference}")
        if await _find_payment(connection, invoice_id, payment.c.reverses == before.id) is not None:
            raise ReferenceTaken(f"the payment {reference} was taken back: name another")
        return Paid(known, before, False)
    after = paid(known.standing, amount_minor, may_overpay=may_overpay)
    check_received(received_on, known.month, await store_time(connection))
    noted = await _write(
        connection,
        invoice_id=invoice_id,
        amount_minor=amount_minor,
        received_on=received_on,
        reference=reference,
        overpays=amount_minor > known.standing.outstanding_minor,
        noted_by=by,
    )
    await settle(connection, known, after.status)
    return Paid(await load_invoice(connection, invoice_id), noted, True)


async def take_back_payment(
    connection: AsyncConnection, invoice_id: UUID, named: UUID | str, *, reason: str, by: str
) -> Paid:
    """Take back a payment, by its id or its reference, whole: by an entry of its own, which is what
    is given back. Again for the same reason it is the one that is there. Within the caller's
    transaction. Raises InvoiceNotFound, PaymentNotFound, RefusedChange, and ReferenceTaken where it
    was taken back for another reason."""
    known = await load_invoice(connection, invoice_id, lock=True)
    which = payment.c.id == named if isinstance(named, UUID) else payment.c.reference == named
    wrong = await _find_payment(connection, invoice_id, which)
    if wrong is None:
        raise PaymentNotFound(f"the invoice has no such payment: {known.number or known.id}")
    if wrong.reverses is not None:
        raise RefusedChange("what takes a payment back is not taken back: note the payment again")
    before = await _find_payment(connection, invoice_id, payment.c.reverses == wrong.id)
    if before is not None:
        if before.reason != reason:
            raise ReferenceTaken("that payment was taken back for another reason")
        return Paid(known, before, False)
    after = taken_back(known.standing, wrong.amount_minor)
    noted = await _write(
        connection,
        invoice_id=invoice_id,
        amount_minor=-wrong.amount_minor,
        received_on=(await store_time(connection)).date(),
        reference=f"reversal of {wrong.id}",
        reverses=wrong.id,
        reason=reason,
        noted_by=by,
    )
    await settle(connection, known, after.status)
    return Paid(await load_invoice(connection, invoice_id), noted, True)


async def settle(connection: AsyncConnection, known: StoredInvoice, status: Status) -> None:
    """Say that an invoice is paid, where by now it is, or no longer is."""
    if status is known.status:
        return
    paid_at = await store_time(connection) if status is Status.PAID else None
    await connection.execute(
        update(invoice).where(_columns.id == known.id).values(status=status.value, paid_at=paid_at)
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
    connection: AsyncConnection, invoice_id: UUID, which: ColumnElement[bool]
) -> StoredPayment | None:
    of_it = select(*_PAYMENT).where(payment.c.invoice_id == invoice_id, which)
    row = (await connection.execute(of_it)).one_or_none()
    return None if row is None else StoredPayment(**row._asdict())


async def _write(connection: AsyncConnection, **values: object) -> StoredPayment:
    written = await connection.execute(insert(payment).values(**values).returning(*_PAYMENT))
    return StoredPayment(**written.one()._asdict())
