"""Invoices and credit notes as plain values, money in texts: what JSON documents and the finance
API show."""

from typing import Any

import msgspec

from billing.documents.rows_csv import price_per
from billing.domain.invoicing.document import CreditDocument, Document, content_hash
from billing.domain.invoicing.lines import Line, show_unit_price
from billing.domain.invoicing.party import Customer, Seller
from billing.domain.invoicing.periods import Month
from billing.domain.invoicing.rounding import show_minor
from billing.domain.invoicing.tax import show_tax_rate
from billing.domain.invoicing.totals import TaxLine
from billing.domain.money import show_amount

View = dict[str, Any]


def invoice_view(document: Document) -> View:
    """An invoice, whole. `content_hash` is that of its canonical bytes; a draft, which is made anew
    at each look, has none."""
    currency = document.currency
    return {
        "format": document.format,
        "invoice_id": document.invoice_id,
        "number": document.number,
        "currency": currency,
        "issued_at": _instant(document.issued_at),
        "issued_on": _day(document.issued_on),
        "due_on": _day(document.due_on),
        "seller": party_view(document.seller),
        "customer": party_view(document.customer),
        "period": period_view(document.period),
        "lines": [line_view(line, currency) for line in document.lines],
        "subtotal": show_minor(document.totals.subtotal_minor, currency),
        "taxes": [tax_view(tax, currency) for tax in document.totals.taxes],
        "total": show_minor(document.totals.total_minor, currency),
        "row_count": document.row_count,
        "cut_off": _instant(document.cut_off),
        "notes": list(document.notes),
        "content_hash": content_hash(document) if document.number else None,
    }


def credit_note_view(document: CreditDocument) -> View:
    """A credit note, whole. `amount` of a line is what is credited of it, `invoiced` what it was;
    all else is as on the invoice."""
    currency, note = document.currency, document.note
    credited = {line.position: line.amount_minor for line in note.lines}
    return {
        "format": document.format,
        "credit_note_id": document.credit_note_id,
        "number": document.number,
        "invoice_id": document.invoice_id,
        "invoice_number": document.invoice_number,
        "invoice_issued_on": _day(document.invoice_issued_on),
        "currency": currency,
        "issued_at": _instant(document.issued_at),
        "issued_on": _day(document.issued_on),
        "seller": party_view(document.seller),
        "customer": party_view(document.customer),
        "period": period_view(document.period),
        "reason": note.reason,
        "lines": [
            line_view(line, currency)
            | {
                "invoiced": show_minor(line.amount_minor, currency),
                "amount": show_minor(credited[line.position], currency),
            }
            for line in document.lines
        ],
        "subtotal": show_minor(note.subtotal_minor, currency),
        "taxes": [tax_view(tax, currency) for tax in note.taxes],
        "total": show_minor(note.total_minor, currency),
        "notes": list(document.notes),
        "content_hash": content_hash(document),
    }


def line_view(line: Line, currency: str) -> View:
    """A line. `unit_price` is said of `price_per` units; `amount_exact` is what both make,
    `amount` that rounded."""
    return {
        "position": line.position,
        "kind": line.kind.value,
        "month": line.month,
        "model": line.model,
        "provider": line.provider,
        "class": line.request_class,
        "unit": line.unit,
        "quantity": line.quantity,
        "unit_price": show_unit_price(line, currency),
        "price_per": int(price_per(line)),
        "price_id": line.price_id,
        "amount_exact": show_amount(line.amount_pico, currency),
        "amount": show_minor(line.amount_minor, currency),
        "tax_rate": show_tax_rate(line.tax_rate_milli_percent),
    }


def tax_view(tax: TaxLine, currency: str) -> View:
    """The tax of one rate."""
    return {
        "rate": show_tax_rate(tax.rate_milli_percent),
        "name": tax.name,
        "note": tax.note,
        "base": show_minor(tax.base_minor, currency),
        "amount": show_minor(tax.tax_minor, currency),
    }


def period_view(month: Month) -> View:
    """A month's bounds as instants, the end not included."""
    return {
        "month": month.name,
        "time_zone": month.time_zone,
        "start": _instant(month.start),
        "end": _instant(month.end),
    }


def party_view(party: Seller | Customer | None) -> View | None:
    """A seller or a customer, as printed."""
    shown: View | None = msgspec.to_builtins(party)
    return shown


def _instant(at: Any) -> Any:
    return msgspec.to_builtins(at)


def _day(on: Any) -> Any:
    return msgspec.to_builtins(on)
