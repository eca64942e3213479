"""Credit notes as Postgres holds them: issued at once, citing lines of an invoice."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

import msgspec
from sqlalchemy import Select, insert, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from billing.domain.invoicing.credit import CreditLine, CreditNote, credit, left_to_credit
from billing.domain.invoicing.document import (
    CreditDocument,
    Document,
    canonical_bytes,
    content_hash,
    read_credit_document,
)
from billing.domain.invoicing.lifecycle import credited
from billing.domain.invoicing.numbering import date_of_issue, series_of
from billing.postgres.invoice_numbers import take_number
from billing.postgres.invoice_settle import ReferenceTaken, settle
from billing.postgres.invoice_tables import credit_note, credit_note_line
from billing.postgres.invoices import StoredInvoice, load_document, load_invoice, store_time

_columns = credit_note.c


class CreditNoteNotFound(LookupError):
    """No credit note has that id."""


class StoredCreditNote(msgspec.Struct, frozen=True, kw_only=True):
    """A credit note without what is printed on it. Amounts are minor units, instants UTC."""

    id: UUID
    invoice_id: UUID
    tenant_id: str
    currency: str
    number: str
    reason: str
    reference: str | None
    net_minor: int
    tax_minor: int
    total_minor: int
    content_hash: str
    issued_at: datetime
    issued_by: str


class Credited(NamedTuple):
    """An invoice and a credit note of it; `is_new` where this call issued it."""

    invoice: StoredInvoice
    credit_note: StoredCreditNote
    is_new: bool


async def issue_credit_note(
    connection: AsyncConnection,
    invoice_id: UUID,
    *,
    wanted: Iterable[CreditLine] | None,
    reason: str,
    reference: str | None = None,
    by: str,
) -> Credited:
    """Issue a credit note of these lines, or with None of all that is left of the invoice; the same
    one again (by its reference, which is the caller's own) is the one that is there.

    Within the caller's transaction. Raises InvoiceNotFound, RefusedChange, RefusedCredit, and
    ReferenceTaken where that reference credits something else.
    """
    known = await load_invoice(connection, invoice_id, lock=True)
    document = await load_document(connection, invoice_id)
    earlier = await _notes_of(connection, invoice_id)
    cited = None if wanted is None else tuple(sorted(wanted, key=lambda line: line.position))
    if reference is not None and reference in earlier:
        before, its_note = earlier[reference]
        if cited is None:
            sooner = [note for stored, note in earlier.values() if stored.id < before.id]
            cited = left_to_credit(document.lines, sooner)
        if (cited, reason) != (its_note.lines, its_note.reason):
            raise ReferenceTaken(f"another credit note of it has the reference {reference}")
        return Credited(known, before, False)
    notes = [note for _, note in earlier.values()]
    # Its status first: of a draft nothing is credited, whatever its lines.
    credited(known.standing, 0)
    note = credit(
        document.lines,
        document.totals,
        notes,
        left_to_credit(document.lines, notes) if cited is None else cited,
        reason,
    )
    after = credited(known.standing, note.total_minor)
    stored = await _write(connection, document, note, reference, by=by)
    await settle(connection, known, after.status)
    return Credited(await load_invoice(connection, invoice_id), stored, True)


async def load_credit_note(connection: AsyncConnection, note_id: UUID) -> StoredCreditNote:
    """One credit note. Raises CreditNoteNotFound."""
    row = (await connection.execute(_selected().where(_columns.id == note_id))).one_or_none()
    if row is None:
        raise CreditNoteNotFound(f"there is no credit note {note_id}")
    return StoredCreditNote(**row._asdict())


async def list_credit_notes(
    connection: AsyncConnection,
    *,
    tenant_id: str | None = None,
    invoice_id: UUID | None = None,
    limit: int = 100,
    before: UUID | None = None,
) -> list[StoredCreditNote]:
    """The latest first, those issued before the credit note `before`."""
    query = _selected().order_by(_columns.id.desc()).limit(limit)
    if tenant_id is not None:
        query = query.where(_columns.tenant_id == tenant_id)
    if invoice_id is not None:
        query = query.where(_columns.invoice_id == invoice_id)
    if before is not None:
        query = query.where(_columns.id < before)
    return [StoredCreditNote(**row._asdict()) for row in await connection.execute(query)]


async def load_credit_document(connection: AsyncConnection, note_id: UUID) -> CreditDocument:
    """What is printed on it. Raises CreditNoteNotFound."""
    return read_credit_document(await load_credit_document_bytes(connection, note_id))


async def load_credit_document_bytes(connection: AsyncConnection, note_id: UUID) -> bytes:
    """The same, as it was written down. Raises CreditNoteNotFound."""
    content: bytes | None = await connection.scalar(
        select(_columns.document).where(_columns.id == note_id)
    )
    if content is None:
        raise CreditNoteNotFound(f"there is no credit note {note_id}")
    return content


async def notes_of(connection: AsyncConnection, invoice_id: UUID) -> list[CreditNote]:
    """What each credit note of an invoice gives back of it."""
    return [note for _, note in (await _notes_of(connection, invoice_id)).values()]


async def _notes_of(
    connection: AsyncConnection, invoice_id: UUID
) -> dict[str | None, tuple[StoredCreditNote, CreditNote]]:
    """Those of an invoice by their reference, or where they have none by their number."""
    found: dict[str | None, tuple[StoredCreditNote, CreditNote]] = {}
    for stored in await list_credit_notes(connection, invoice_id=invoice_id, limit=100_000):
        document = await load_credit_document(connection, stored.id)
        found[stored.reference or f"\0{stored.number}"] = (stored, document.note)
    return found


async def _write(
    connection: AsyncConnection,
    of: Document,
    note: CreditNote,
    reference: str | None,
    *,
    by: str,
) -> StoredCreditNote:
    if of.seller is None or of.number is None or of.issued_on is None:
        raise ValueError("an issued invoice has a seller, a number and a date")
    now = await store_time(connection)
    issued_on = date_of_issue(now, of.seller.time_zone)
    note_id: UUID = (await connection.execute(select(text("uuidv7()")))).scalar_one()
    number = await take_number(connection, series_of(of.seller.credit_note_prefix, issued_on))
    by_position = {line.position: line for line in of.lines}
    document = CreditDocument(
        credit_note_id=str(note_id),
        number=number,
        invoice_id=of.invoice_id,
        invoice_number=of.number,
        invoice_issued_on=of.issued_on,
        currency=of.currency,
        issued_at=now,
        issued_on=issued_on,
        seller=of.seller,
        customer=of.customer,
        period=of.period,
        lines=tuple(by_position[line.position] for line in note.lines),
        note=note,
        notes=of.notes,
    )
    return await _stored(connection, document, note_id, reference, by=by)


async def _stored(
    connection: AsyncConnection,
    document: CreditDocument,
    note_id: UUID,
    reference: str | None,
    *,
    by: str,
) -> StoredCreditNote:
    note = document.note
    stored = StoredCreditNote(
        id=note_id,
        invoice_id=UUID(document.invoice_id),
        tenant_id=document.customer.tenant_id,
        currency=document.currency,
        number=document.number,
        reason=note.reason,
        reference=reference,
        net_minor=note.subtotal_minor,
        tax_minor=note.total_minor - note.subtotal_minor,
        total_minor=note.total_minor,
        content_hash=content_hash(document),
        issued_at=document.issued_at,
        issued_by=by,
    )
    await connection.execute(
        insert(credit_note).values(
            **msgspec.structs.asdict(stored), document=canonical_bytes(document)
        )
    )
    await connection.execute(
        insert(credit_note_line),
        [
            {
                "credit_note_id": note_id,
                "position": position,
                "invoice_id": stored.invoice_id,
                "invoice_position": line.position,
                "amount_minor": line.amount_minor,
            }
            for position, line in enumerate(note.lines, 1)
        ],
    )
    return stored


def _selected() -> Select[Any]:
    return select(*(_columns[name] for name in StoredCreditNote.__struct_fields__))
