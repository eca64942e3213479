"""JSON and CSV of documents, and that every format says one total."""

import csv
import hashlib
import io
import json
import re
from fractions import Fraction

import pypdfium2
import pytest
from document_examples import CUSTOMER, credit_note, draft, invoice, line, many_lines
from msgspec.structs import replace

from billing.documents.formats import Format, file_name, written
from billing.documents.rows_csv import COLUMNS
from billing.domain.invoicing.document import canonical_bytes, content_hash
from billing.domain.invoicing.simulated import SIMULATED_NOTE
from billing.domain.invoicing.tax import Tax
from billing.domain.invoicing.totals import totals_of


def rows(content: bytes) -> list[dict[str, str]]:
    """What a reader of CSV finds."""
    return list(csv.DictReader(io.StringIO(content.decode(), newline="")))


@pytest.mark.parametrize("document", [invoice(), draft(), invoice(many_lines(20)), credit_note()])
def test_each_format_sums_to_the_same_total(document: object) -> None:
    """JSON says it, CSV's amounts sum to it, the PDF shows it; so do the JSON's own parts."""
    view = json.loads(written(document, Format.JSON))  # type: ignore[arg-type]
    total = Fraction(view["total"])
    table = rows(written(document, Format.CSV))  # type: ignore[arg-type]
    assert sum(Fraction(row["amount"]) for row in table) == total
    lines, taxes = view["lines"], view["taxes"]
    subtotal = sum(Fraction(each["amount"]) for each in lines)
    assert subtotal == Fraction(view["subtotal"])
    assert subtotal + sum(Fraction(each["amount"]) for each in taxes) == total
    pdf = pypdfium2.PdfDocument(written(document, Format.PDF))  # type: ignore[arg-type]
    said = pdf[len(pdf) - 1].get_textpage().get_text_range()
    shown = re.search(r"(?:Total|Credited) \(USD\)\s+([\d,.]+)", said[said.index("Subtotal") :])
    assert shown is not None
    assert Fraction(shown[1].replace(",", "")) == total


def test_each_row_of_the_csv_checks_with_a_calculator() -> None:
    """Quantity times price, divided by what the price is of, is the exact amount; rounded half away
    from zero, the amount."""
    for row in rows(written(invoice(), Format.CSV)):
        if row["row"] != "line":
            continue
        exact = Fraction(row["quantity"]) * Fraction(row["unit_price"]) / int(row["price_per"])
        assert Fraction(row["amount_exact"]) == exact
        assert Fraction(row["amount"]) == Fraction(int(exact * 100 + Fraction(1, 2)), 100)


def test_the_csv_has_its_columns_and_the_lines_of_rfc_4180() -> None:
    content = written(invoice(), Format.CSV).decode()
    assert content.startswith(",".join(COLUMNS) + "\r\n")
    assert content.count("\r\n") == content.count("\n") == 1 + 6 + 1
    first, *_, tax = rows(content.encode())
    assert first == {
        "row": "line",
        "document": "INV-2026-000042",
        "invoice": "INV-2026-000042",
        "tenant_id": "acme",
        "period": "2026-11",
        "position": "1",
        "kind": "usage",
        "month": "2026-11",
        "model": "smollm2-135m",
        "provider": "self",
        "class": "interactive",
        "unit": "input_tokens",
        "quantity": "12345678",
        "unit_price": "0.40",
        "price_per": "1000000",
        "price_id": "1",
        "currency": "USD",
        "amount_exact": "4.9382712",
        "amount": "4.94",
        "tax_rate": "19",
        "tax_name": "",
        "reason": "",
        "notes": "",
    }
    assert (tax["row"], tax["amount"], tax["tax_name"]) == ("tax", "5.87", "VAT")


def test_each_row_of_the_csv_says_what_the_document_does() -> None:
    """That its usage is simulated, of an invoice and of its credit note, and why that is given; no
    row is more for it."""
    notes = ("Reverse charge", SIMULATED_NOTE)
    plain, noted = invoice(), invoice(notes=notes)
    for row, before in zip(
        rows(written(noted, Format.CSV)), rows(written(plain, Format.CSV)), strict=True
    ):
        assert row == {**before, "notes": f"Reverse charge; {SIMULATED_NOTE}"}
    credited = rows(written(replace(credit_note(noted), notes=notes), Format.CSV))
    assert {(row["reason"], row["notes"]) for row in credited} == {
        ("Wrong answers on 12 November", f"Reverse charge; {SIMULATED_NOTE}")
    }


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@SUM(A1)", "\tx"])
def test_no_cell_of_the_csv_is_run_by_a_spreadsheet(name: str) -> None:
    document = invoice(
        totals=totals_of(invoice().lines, [Tax(rate_milli_percent=19_000, name=name)]),
        notes=(name,),
    )
    note = credit_note(document)
    note = replace(note, notes=(name,), note=replace(note.note, reason=name))
    for row in rows(written(document, Format.CSV)) + rows(written(note, Format.CSV)):
        assert not any(cell.startswith(("=", "+", "-", "@", "\t")) for cell in row.values())


def test_json_has_money_in_texts_and_no_float() -> None:
    """Exactly, also beyond what a float can hold."""
    lines = (line(1, "input_tokens", 9_007_199_254_740_993, 10**6 + 1),)
    document = invoice(lines)
    seen: list[str] = []
    view = json.loads(written(document, Format.JSON), parse_float=seen.append)
    assert seen == []
    assert view["lines"][0]["quantity"] == 9_007_199_254_740_993
    assert view["lines"][0]["amount_exact"] == "9007208261.940247740993"
    assert view["lines"][0]["amount"] == "9007208261.94"


def test_json_names_the_hash_of_the_canonical_bytes() -> None:
    """A draft, which is made anew at each look, has none."""
    view = json.loads(written(invoice(), Format.JSON))
    assert view["content_hash"] == hashlib.sha256(canonical_bytes(invoice())).hexdigest()
    assert view["content_hash"] == content_hash(invoice())
    assert json.loads(written(draft(), Format.JSON))["content_hash"] is None


@pytest.mark.parametrize("wanted", list(Format))
def test_the_same_document_gives_the_same_bytes(wanted: Format) -> None:
    """And another document others."""
    assert written(invoice(), wanted) == written(invoice(), wanted)
    other = invoice(customer=replace(CUSTOMER, tenant_id="globex"))
    assert written(other, wanted) != written(invoice(), wanted)
    assert written(credit_note(), wanted) == written(credit_note(), wanted)


def test_files_are_named_by_the_number() -> None:
    assert file_name(invoice(), Format.PDF) == "INV-2026-000042.pdf"
    assert file_name(draft(), Format.CSV) == "draft-acme-2026-11.csv"
    assert file_name(credit_note(), Format.JSON) == "CN-2026-000007.json"
