"""Invoices as Postgres holds them: one, a page of them, and what is printed on each."""

from datetime import date, datetime
from typing import Any
from uuid import UUID

import msgspec
from sqlalchemy import ColumnElement, Select, case, cast, func, select, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import AsyncConnection

from billing.domain.invoicing.document import Document, read_document
from billing.domain.invoicing.lifecycle import Standing, Status
from billing.domain.invoicing.periods import Month
from billing.domain.invoicing.simulated import SIMULATED_NOTE
from billing.postgres.invoice_tables import credit_note, invoice, payment

_columns = invoice.c


class InvoiceNotFound(LookupError):
    """No invoice has that id."""


class StoredInvoice(msgspec.Struct, frozen=True, kw_only=True):
    """An invoice without what is printed on it. Amounts are minor units, instants UTC."""

    id: UUID
    tenant_id: str
    currency: str
    month: str
    """As `2026-11`, by the tenant's calendar."""
    time_zone: str
    period_start: datetime
    period_end: datetime
    status: Status
    number: str | None
    subtotal_minor: int
    tax_minor: int
    total_minor: int
    paid_minor: int
    credited_minor: int
    """With tax."""
    row_count: int
    cost_pico: int
    """What its records add up to, before rounding and tax."""
    cut_off: datetime
    content_hash: str
    drafted_at: datetime
    drafted_by: str
    issued_at: datetime | None
    issued_by: str | None
    due_on: date | None
    override: dict[str, Any] | None
    """Why it was issued although something might still come, and what that was."""
    paid_at: datetime | None
    voided_at: datetime | None
    voided_by: str | None
    void_reason: str | None
    simulated: bool
    """Whether any of its usage is, which its document says too."""

    @property
    def standing(self) -> Standing:
        """For the rules of what it may become, and what is outstanding."""
        return Standing(
            status=self.status,
            total_minor=self.total_minor,
            paid_minor=self.paid_minor,
            credited_minor=self.credited_minor,
        )

    @property
    def period(self) -> Month:
        """What it covers."""
        return Month(self.month, self.time_zone, self.period_start, self.period_end)


class StoredPayment(msgspec.Struct, frozen=True, kw_only=True):
    """A payment that finance has noted."""

    id: UUID
    invoice_id: UUID
    amount_minor: int
    received_on: date
    reference: str
    noted_at: datetime
    noted_by: str
    overpays: bool
    """Whether it was more than was outstanding."""
    reverses: UUID | None
    """The payment that it takes back; its amount is that one's below nothing."""
    reason: str | None
    """Why that is taken back."""


class InvoiceFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which invoices; None takes any."""

    tenant_id: str | None = None
    month: str | None = None
    currency: str | None = None
    status: Status | None = None


ANY = InvoiceFilter()


async def load_invoice(
    connection: AsyncConnection, invoice_id: UUID, *, lock: bool = False
) -> StoredInvoice:
    """One invoice; with `lock` nobody else changes it until the transaction ends. Raises
    InvoiceNotFound."""
    if lock:
        # Apart: what settles it is summed up once the lock is held, not before.
        locked = select(_columns.id).where(_columns.id == invoice_id).with_for_update()
        await connection.execute(locked)
    row = (await connection.execute(_selected().where(_columns.id == invoice_id))).one_or_none()
    if row is None:
        raise InvoiceNotFound(f"there is no invoice {invoice_id}")
    return invoice_from(row)


async def find_invoice(
    connection: AsyncConnection, tenant_id: str, currency: str, month: str
) -> StoredInvoice | None:
    """The invoice of a month that is not void, locked."""
    found = await connection.scalar(
        select(_columns.id)
        .where(
            _columns.tenant_id == tenant_id,
            _columns.currency == currency,
            _columns.month == month,
            _columns.status != Status.VOID,
        )
        .with_for_update()
    )
    return None if found is None else await load_invoice(connection, found)


async def list_invoices(
    connection: AsyncConnection,
    wanted: InvoiceFilter = ANY,
    *,
    limit: int = 100,
    before: UUID | None = None,
    with_drafts: bool = True,
) -> list[StoredInvoice]:
    """The latest drafted first, those drafted before the invoice `before`."""
    query = _selected().order_by(_columns.id.desc()).limit(limit)
    for field in msgspec.structs.fields(InvoiceFilter):
        value = getattr(wanted, field.name)
        if value is not None:
            query = query.where(_columns[field.name] == value)
    if not with_drafts:
        query = query.where(_columns.status != Status.DRAFT)
    if before is not None:
        query = query.where(_columns.id < before)
    return [invoice_from(row) for row in await connection.execute(query)]


async def load_document_bytes(connection: AsyncConnection, invoice_id: UUID) -> bytes:
    """What is printed, as it was written down. Raises InvoiceNotFound."""
    content: bytes | None = await connection.scalar(
        select(_columns.document).where(_columns.id == invoice_id)
    )
    if content is None:
        raise InvoiceNotFound(f"there is no invoice {invoice_id}")
    return content


async def load_document(connection: AsyncConnection, invoice_id: UUID) -> Document:
    """What is printed on it. Raises InvoiceNotFound."""
    return read_document(await load_document_bytes(connection, invoice_id))


async def list_payments(connection: AsyncConnection, invoice_id: UUID) -> list[StoredPayment]:
    """Of an invoice, in the order in which they were noted."""
    rows = await connection.execute(
        select(*(payment.c[name] for name in StoredPayment.__struct_fields__))
        .where(payment.c.invoice_id == invoice_id)
        .order_by(payment.c.id)
    )
    return [StoredPayment(**row._asdict()) for row in rows]


async def lock_tenant(connection: AsyncConnection, tenant_id: str) -> None:
    """Until the transaction ends nobody else drafts, issues or voids an invoice of the tenant."""
    await connection.execute(
        text("SELECT pg_advisory_xact_lock(hashtextextended('invoice:' || :tenant, 0))"),
        {"tenant": tenant_id},
    )


async def store_time(connection: AsyncConnection) -> datetime:
    """Postgres's clock now, in whole milliseconds."""
    at: datetime = await connection.scalar(
        text("SELECT date_trunc('milliseconds', clock_timestamp())")
    )
    return at


def invoice_from(row: Any) -> StoredInvoice:
    """The invoice of a row that `_selected` gave."""
    values = row._asdict()
    return StoredInvoice(
        **values
        | {
            "status": Status(row.status),
            "cost_pico": int(row.cost_pico),
            "paid_minor": int(row.paid_minor),
            "credited_minor": int(row.credited_minor),
        }
    )


def _selected() -> Select[Any]:
    paid = select(func.coalesce(func.sum(payment.c.amount_minor), 0)).where(
        payment.c.invoice_id == _columns.id
    )
    credited = select(func.coalesce(func.sum(credit_note.c.total_minor), 0)).where(
        credit_note.c.invoice_id == _columns.id
    )
    printed = func.convert_from(_columns.document, "UTF8")
    # Few have the words at all, and only these are read as JSON, in which a customer may say them.
    noted = case(
        (
            func.strpos(printed, SIMULATED_NOTE) > 0,
            cast(printed, JSONB)["notes"].contains([SIMULATED_NOTE]),
        ),
        else_=False,
    )
    made: dict[str, ColumnElement[Any]] = {
        "simulated": noted.label("simulated"),
        "paid_minor": paid.scalar_subquery().label("paid_minor"),
        "credited_minor": credited.scalar_subquery().label("credited_minor"),
    }
    columns: list[ColumnElement[Any]] = [
        made[name] if name in made else _columns[name] for name in StoredInvoice.__struct_fields__
    ]
    return select(*columns)
