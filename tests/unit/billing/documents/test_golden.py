"""The golden invoices of tests/golden, printed: on paper is what a person checks in their files."""

import csv
import io
from fractions import Fraction
from pathlib import Path

import pypdfium2
import pytest

from billing.documents.formats import Format, written
from billing.documents.wording import amount, day
from billing.domain.invoicing.document import Document, content_hash, read_document
from billing.domain.invoicing.rounding import show_minor

GOLDEN = Path(__file__).parents[4] / "tests" / "golden" / "invoices"


def golden(name: str) -> Document:
    """The document as it was written down."""
    return read_document((GOLDEN / name / "document.json").read_bytes())


@pytest.mark.parametrize("name", sorted(each.name for each in GOLDEN.iterdir() if each.is_dir()))
def test_a_golden_invoice_is_printed_to_the_minor_unit(name: str) -> None:
    """Number, days, each line and every sum on paper; the CSV sums to the total."""
    document = golden(name)
    currency = document.currency
    said = "\n".join(
        page.get_textpage().get_text_range()
        for page in pypdfium2.PdfDocument(written(document, Format.PDF))
    )
    for expected in (
        str(document.number),
        day(document.issued_on),
        day(document.due_on),
        document.customer.name,
        f"Total ({currency})",
        amount(document.totals.subtotal_minor, currency),
        amount(document.totals.total_minor, currency),
        content_hash(document),
        *(f"{line.quantity:,}" for line in document.lines),
        *(amount(line.amount_minor, currency) for line in document.lines),
        *(amount(tax.tax_minor, currency) for tax in document.totals.taxes),
    ):
        assert expected in said, expected
    table = csv.DictReader(io.StringIO(written(document, Format.CSV).decode(), newline=""))
    total = sum(Fraction(row["amount"]) for row in table)
    assert total == Fraction(show_minor(document.totals.total_minor, currency))
