"""The formats that a document is handed out in."""

from enum import StrEnum

import msgspec

from billing.documents.pdf import credit_note_pdf, invoice_pdf
from billing.documents.rows_csv import credit_note_csv, invoice_csv
from billing.documents.views import credit_note_view, invoice_view
from billing.domain.invoicing.document import CreditDocument, Document


class Format(StrEnum):
    """By the ending of a file's name."""

    JSON = "json"
    CSV = "csv"
    PDF = "pdf"


MEDIA_TYPES = {
    Format.JSON: "application/json",
    Format.CSV: "text/csv",
    Format.PDF: "application/pdf",
}
"""JSON and CSV are UTF-8."""


def written(document: Document | CreditDocument, wanted: Format, *, void: bool = False) -> bytes:
    """A document in that format. `void` marks the PDF of an invoice; nothing else is of now, so the
    same document gives the same bytes."""
    if isinstance(document, CreditDocument):
        return _credit_note(document, wanted)
    if wanted is Format.PDF:
        return invoice_pdf(document, void=void)
    if wanted is Format.CSV:
        return invoice_csv(document)
    return _json(invoice_view(document))


def file_name(document: Document | CreditDocument, wanted: Format) -> str:
    """What a file of it is called."""
    if document.number:
        return f"{document.number}.{wanted}"
    assert isinstance(document, Document)  # noqa: S101 - a credit note always has a number
    return f"draft-{document.customer.tenant_id}-{document.period.name}.{wanted}"


def _credit_note(document: CreditDocument, wanted: Format) -> bytes:
    if wanted is Format.PDF:
        return credit_note_pdf(document)
    if wanted is Format.CSV:
        return credit_note_csv(document)
    return _json(credit_note_view(document))


def _json(view: dict[str, object]) -> bytes:
    return msgspec.json.format(msgspec.json.encode(view), indent=2) + b"\n"
