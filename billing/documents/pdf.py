"""Invoices and credit notes as PDF."""

from collections.abc import Sequence

from billing.documents.blocks import (
    SMALL,
    document_head,
    draw_footer,
    listed,
    paragraph,
    running_head,
    space,
    sum_rows,
)
from billing.documents.paging import Block, Page, Pages
from billing.documents.sheet import Sheet
from billing.documents.tables import (
    credit_rows,
    credit_table,
    invoice_rows,
    invoice_table,
    nothing_used,
)
from billing.documents.wording import amount, day, instant, month_name, period, tax_label
from billing.domain.invoicing.document import CreditDocument, Document, content_hash
from billing.domain.invoicing.party import Seller
from billing.domain.invoicing.totals import TaxLine


def invoice_pdf(document: Document, *, void: bool = False) -> bytes:
    """An invoice, marked across each page where it is a draft or void."""
    mark = "VOID" if void else None if document.number else "DRAFT"
    title = {"DRAFT": "Draft invoice", "VOID": "Void invoice"}.get(mark or "", "Invoice")
    number = document.number or "Draft"
    pages = Pages(running_head(_from(document.seller), f"{title} {document.number or ''}".strip()))
    customer = document.customer
    facts = [
        ("Invoice number", document.number or "none yet"),
        ("Date of issue", day(document.issued_on)),
        ("Due date", day(document.due_on)),
        ("Billing period", month_name(document.period.name)),
        ("Customer number", customer.tenant_id),
        ("Your reference", customer.reference or ""),
    ]
    for block in document_head(title, facts, document.seller, customer):
        pages.place(block)
    pages.place(paragraph(f"Usage {period(document.period)}."), space(10))
    totals = _invoice_sums(document)
    if document.lines:
        pages.place_table(invoice_table(document), invoice_rows(document), keep=totals.height)
    else:
        pages.place(invoice_table(document).head, nothing_used())
    pages.place(totals)
    for note in _notes(document.totals.taxes, document.notes):
        pages.place(paragraph(note), space(4))
    if document.number and not void:
        pages.place(space(12), listed("Payment", _payment(document)))
    pages.place(space(10), _record_facts(document))
    return _drawn(
        pages.pages,
        mark=mark,
        title=f"{title} {number}",
        author=_from(document.seller),
        footer=f"{title} {document.number or ''} · {_from(document.seller)}".strip(" ·"),
    )


def credit_note_pdf(document: CreditDocument) -> bytes:
    """A credit note."""
    title = "Credit note"
    pages = Pages(running_head(document.seller.name, f"{title} {document.number}"))
    facts = [
        ("Credit note no.", document.number),
        ("Date of issue", day(document.issued_on)),
        ("Credits invoice", document.invoice_number),
        ("Invoice date", day(document.invoice_issued_on)),
        ("Billing period", month_name(document.period.name)),
        ("Customer number", document.customer.tenant_id),
        ("Your reference", document.customer.reference or ""),
    ]
    for block in document_head(title, facts, document.seller, document.customer):
        pages.place(block)
    pages.place(paragraph(f"Reason: {document.note.reason}"), space(10))
    totals = sum_rows(
        [
            ("Subtotal", amount(document.note.subtotal_minor, document.currency)),
            *_taxes(document.note.taxes, document.currency),
        ],
        (
            f"Credited ({document.currency})",
            amount(document.note.total_minor, document.currency),
        ),
    )
    pages.place_table(credit_table(document), credit_rows(document), keep=totals.height)
    pages.place(totals)
    for note in _notes(document.note.taxes, document.notes):
        pages.place(paragraph(note), space(4))
    pages.place(
        space(10),
        paragraph(f"SHA-256 of this document's data: {content_hash(document)}", size=SMALL),
    )
    return _drawn(
        pages.pages,
        mark=None,
        title=f"{title} {document.number}",
        author=document.seller.name,
        footer=f"{title} {document.number} · {document.seller.name}",
    )


def _invoice_sums(document: Document) -> Block:
    currency, totals = document.currency, document.totals
    return sum_rows(
        [
            ("Subtotal", amount(totals.subtotal_minor, currency)),
            *_taxes(totals.taxes, currency),
        ],
        (f"Total ({currency})", amount(totals.total_minor, currency)),
    )


def _taxes(taxes: Sequence[TaxLine], currency: str) -> list[tuple[str, str]]:
    return [(tax_label(tax, currency), amount(tax.tax_minor, currency)) for tax in taxes]


def _notes(taxes: Sequence[TaxLine], notes: Sequence[str]) -> list[str]:
    """What is said below the total, each once."""
    said = [*(tax.note for tax in taxes if tax.note), *notes]
    return list(dict.fromkeys(said))


def _payment(document: Document) -> list[str]:
    bank = () if document.seller is None else document.seller.bank
    due = f"Please pay {amount(document.totals.total_minor, document.currency)} {document.currency}"
    if document.totals.total_minor == 0:
        return ["Nothing is to be paid."]
    return [f"{due} by {day(document.due_on)}, naming {document.number}.", *bank]


def _record_facts(document: Document) -> Block:
    records = f"{document.row_count:,} usage record{'' if document.row_count == 1 else 's'}"
    said = f"{records}, as known at {instant(document.cut_off)}."
    if document.number:
        said += f" SHA-256 of this document's data: {content_hash(document)}"
    return paragraph(said, size=SMALL)


def _from(seller: Seller | None) -> str:
    return "" if seller is None else seller.name


def _drawn(
    pages: Sequence[Page], *, mark: str | None, title: str, author: str, footer: str
) -> bytes:
    sheet = Sheet(title=title, author=author)
    for number, page in enumerate(pages, start=1):
        if mark is not None:
            sheet.mark(mark)
        page.draw(sheet)
        draw_footer(sheet, footer, number, len(pages))
        sheet.next_page()
    return sheet.content()
