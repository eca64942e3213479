"""What is printed on an invoice and on a credit note, whole: JSON, CSV and PDF are made of nothing
else, so that the same document gives the same bytes."""

import hashlib
from datetime import UTC, date, datetime, timedelta

import msgspec

from billing.domain.invoicing.credit import CreditNote
from billing.domain.invoicing.lines import Line
from billing.domain.invoicing.party import Customer, Seller
from billing.domain.invoicing.periods import Month
from billing.domain.invoicing.totals import Totals


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """An invoice. Instants are UTC, dates those of the seller's time zone."""

    format: int = 1
    """Grows when its fields change; what was issued before stays as it was."""
    invoice_id: str
    number: str | None
    """None of a draft, which has neither a date nor an instant of issue."""
    currency: str
    issued_at: datetime | None
    issued_on: date | None
    due_on: date | None
    seller: Seller | None
    """Of a draft None where no seller was written down yet."""
    customer: Customer
    period: Month
    lines: tuple[Line, ...]
    totals: Totals
    row_count: int
    """Usage records that the lines sum up."""
    cut_off: datetime
    """What Postgres had of them at this instant is on it; what came later is not."""
    notes: tuple[str, ...] = ()
    """As printed below the total."""


class CreditDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A credit note. Instants are UTC, dates those of the seller's time zone."""

    format: int = 1
    credit_note_id: str
    number: str
    invoice_id: str
    invoice_number: str
    invoice_issued_on: date
    currency: str
    issued_at: datetime
    issued_on: date
    seller: Seller
    customer: Customer
    period: Month
    lines: tuple[Line, ...]
    """The cited lines as the invoice has them, in the order of the note's."""
    note: CreditNote
    notes: tuple[str, ...] = ()


def canonical_bytes(document: Document | CreditDocument) -> bytes:
    """The one way to write a document down: JSON with sorted names, whole numbers and instants in
    UTC. Raises ValueError for an instant of another zone, which would be other bytes."""
    _in_utc(document)
    return msgspec.json.encode(document, order="sorted")


def content_hash(document: Document | CreditDocument) -> str:
    """SHA-256 of the canonical bytes, in hexadecimal."""
    return hashlib.sha256(canonical_bytes(document)).hexdigest()


def read_document(content: bytes) -> Document:
    """The invoice that was written down. Raises msgspec.ValidationError."""
    return msgspec.json.decode(content, type=Document)


def read_credit_document(content: bytes) -> CreditDocument:
    """The credit note that was written down. Raises msgspec.ValidationError."""
    return msgspec.json.decode(content, type=CreditDocument)


def due_on(issued_on: date, payment_terms_days: int) -> date:
    """The last day on which an invoice is paid in time."""
    return issued_on + timedelta(days=payment_terms_days)


def _in_utc(document: Document | CreditDocument) -> None:
    instants = [document.issued_at, document.period.start, document.period.end]
    if isinstance(document, Document):
        instants.append(document.cut_off)
    for at in instants:
        if at is not None and at.tzinfo is not UTC:
            raise ValueError("instants of a document are in UTC")
