"""Invoices and credit notes as CSV (RFC 4180, UTF-8): a row for each line and one for each tax, so
that the column `amount` sums to the total."""

import csv
import io
from collections.abc import Iterator, Mapping

from billing.domain.invoicing.document import CreditDocument, Document
from billing.domain.invoicing.lines import REQUESTS, TOKENS_PER_PRICE, Line, show_unit_price
from billing.domain.invoicing.rounding import show_minor
from billing.domain.invoicing.tax import show_tax_rate
from billing.domain.invoicing.totals import TaxLine
from billing.domain.money import show_amount

COLUMNS = (
    "row",
    "document",
    "invoice",
    "tenant_id",
    "period",
    "position",
    "kind",
    "month",
    "model",
    "provider",
    "class",
    "unit",
    "quantity",
    "unit_price",
    "price_per",
    "price_id",
    "currency",
    "amount_exact",
    "amount",
    "tax_rate",
    "tax_name",
    "reason",
    "notes",
)
"""`row` is `line` or `tax`. `amount` is rounded, `amount_exact` the quantity times the price. What
is said of the document is in each of its rows: a credit note's `reason`, and the `notes`."""

Cells = Mapping[str, str]
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def invoice_csv(document: Document) -> bytes:
    """An invoice; of a draft the number is empty."""
    shared = {
        "document": document.number or "",
        "invoice": document.number or "",
        "tenant_id": document.customer.tenant_id,
        "period": document.period.name,
        "currency": document.currency,
        "notes": _plain("; ".join(document.notes)),
    }
    amounts = {line.position: line.amount_minor for line in document.lines}
    return _written(
        [
            *_lines(document.lines, amounts, document.currency, shared, exact=True),
            *_taxes(document.totals.taxes, document.currency, shared),
        ]
    )


def credit_note_csv(document: CreditDocument) -> bytes:
    """A credit note. Amounts are what is given back, positive; quantity and price are the line's
    on the invoice."""
    shared = {
        "document": document.number,
        "invoice": document.invoice_number,
        "tenant_id": document.customer.tenant_id,
        "period": document.period.name,
        "currency": document.currency,
        "reason": _plain(document.note.reason),
        "notes": _plain("; ".join(document.notes)),
    }
    amounts = {line.position: line.amount_minor for line in document.note.lines}
    return _written(
        [
            *_lines(document.lines, amounts, document.currency, shared, exact=False),
            *_taxes(document.note.taxes, document.currency, shared),
        ]
    )


def _lines(
    lines: tuple[Line, ...],
    amounts: Mapping[int, int],
    currency: str,
    shared: Cells,
    *,
    exact: bool,
) -> Iterator[Cells]:
    for line in lines:
        yield {
            **shared,
            "row": "line",
            "position": str(line.position),
            "kind": line.kind,
            "month": line.month,
            "model": line.model,
            "provider": line.provider,
            "class": line.request_class,
            "unit": line.unit,
            "quantity": str(line.quantity),
            "unit_price": show_unit_price(line, currency),
            "price_per": price_per(line),
            "price_id": str(line.price_id),
            "amount_exact": show_amount(line.amount_pico, currency) if exact else "",
            "amount": show_minor(amounts[line.position], currency),
            "tax_rate": show_tax_rate(line.tax_rate_milli_percent),
        }


def price_per(line: Line) -> str:
    """Of how many units a line's price is said."""
    return "1" if line.unit == REQUESTS else str(TOKENS_PER_PRICE)


def _taxes(taxes: tuple[TaxLine, ...], currency: str, shared: Cells) -> Iterator[Cells]:
    for tax in taxes:
        yield {
            **shared,
            "row": "tax",
            "amount": show_minor(tax.tax_minor, currency),
            "tax_rate": show_tax_rate(tax.rate_milli_percent),
            "tax_name": _plain(tax.name),
        }


def _plain(text: str) -> str:
    """A spreadsheet runs what begins like a formula; behind an apostrophe it is text."""
    return f"'{text}" if text.startswith(_FORMULA) else text


def _written(rows: list[Cells]) -> bytes:
    content = io.StringIO(newline="")
    writer = csv.DictWriter(content, COLUMNS, restval="", lineterminator="\r\n")
    writer.writeheader()
    writer.writerows(rows)
    return content.getvalue().encode()
