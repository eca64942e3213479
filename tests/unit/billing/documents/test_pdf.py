"""PDFs of invoices and credit notes, read as a reader of PDF reads them."""

import re
from datetime import UTC, datetime
from io import BytesIO

import pypdfium2
import pytest
from document_examples import (
    CUSTOMER,
    SELLER,
    VAT,
    credit_note,
    draft,
    invoice,
    line,
    many_lines,
)
from msgspec.structs import replace
from pypdf import PdfReader

from billing.documents.pdf import credit_note_pdf, invoice_pdf
from billing.domain.invoicing.document import Document, content_hash
from billing.domain.invoicing.periods import month
from billing.domain.invoicing.rounding import show_minor
from billing.domain.invoicing.tax import Tax
from billing.domain.invoicing.totals import totals_of


def pages(pdf: bytes) -> list[str]:
    """The text of each page, a line each as it is drawn."""
    return [
        page.get_textpage().get_text_range().replace("\r\n", "\n")
        for page in pypdfium2.PdfDocument(pdf)
    ]


def text(pdf: bytes) -> str:
    """The text of all pages."""
    return "\n".join(pages(pdf))


def test_an_invoice_says_what_whoever_pays_it_needs() -> None:
    """Both parties with their tax ids, its number and days, the period in the tenant's zone, each
    line, the sums, and where to pay."""
    said = text(invoice_pdf(invoice()))
    for expected in (
        *("Weir Operations GmbH", "Wehrstraße 12", "10115 Berlin", "Tax ID DE123456789"),
        *("Acme Spółka z o.o.", "ul. Długa 44/50", "00-241 Warszawa", "Tax ID PL5260250995"),
        *("INV-2026-000042", "1 December 2026", "31 December 2026", "November 2026", "PO-4711"),
        "from 2026-11-01 00:00+01:00 to before 2026-12-01 00:00+01:00, Europe/Berlin",
        *("Cached input tokens", "12,345,678", "0.40 per 1M", "4.94", "0.0005 each", "20.50"),
        *("smollm2-135m, batch, hosted:elsewhere", "Adjustment for October 2026"),
        *("Subtotal", "30.87", "VAT 19 % on 30.87", "5.87", "Total (USD)", "36.74"),
        *("Please pay 36.74 USD by 31 December 2026", "IBAN DE02 1203 0000 0000 2020 51"),
        *("41,321 usage records", "2026-12-01 08:30:00 UTC", content_hash(invoice())),
        *("Page 1 of 1",),
    ):
        assert expected in said, expected
    assert "DRAFT" not in said
    assert "VOID" not in said


def test_the_same_document_gives_the_same_bytes() -> None:
    """Also after other documents, whose letters are others."""
    first = invoice_pdf(invoice())
    invoice_pdf(invoice(customer=replace(CUSTOMER, name="Ωμέγα Щука")))
    assert invoice_pdf(invoice()) == first
    assert credit_note_pdf(credit_note()) == credit_note_pdf(credit_note())
    assert invoice_pdf(invoice(row_count=1)) != first


def test_a_draft_and_a_void_invoice_are_marked_on_each_page() -> None:
    """Neither asks to be paid."""
    lines = many_lines(40)
    for mark, title, pdf in (
        ("DRAFT", "Draft invoice", invoice_pdf(draft(lines))),
        ("VOID", "Void invoice", invoice_pdf(invoice(lines), void=True)),
    ):
        found = pages(pdf)
        assert len(found) == 5
        assert all(mark in page and title in page for page in found)
        assert "Please pay" not in text(pdf)


def test_a_draft_without_a_seller_says_so() -> None:
    assert "No seller has been set" in text(invoice_pdf(draft(seller=None)))


def test_lines_over_pages_carry_their_sum() -> None:
    """Each page ends with what its lines and those before come to, and the next begins with it;
    every line stands once, and pages are numbered."""
    lines = many_lines(40)
    found = pages(invoice_pdf(invoice(lines)))
    carried = [re.search(r"Carried forward\s+([\d.,]+)", page) for page in found[:-1]]
    brought = [re.search(r"Brought forward\s+([\d.,]+)", page) for page in found[1:]]
    sums = [match[1] for match in carried if match]
    assert sums == [match[1] for match in brought if match]
    assert len(sums) == len(found) - 1
    positions = [
        [int(at) for at in re.findall(r"^(\d+)\s+(?:Input|Cached|Output)", page, re.MULTILINE)]
        for page in found
    ]
    assert [at for page in positions for at in page] == [each.position for each in lines]
    for through, shown in zip((page[-1] for page in positions), sums, strict=False):
        so_far = sum(each.amount_minor for each in lines[:through])
        assert shown == show_minor(so_far, "USD")
    assert [f"Page {at} of {len(found)}" in page for at, page in enumerate(found, start=1)] == (
        [True] * len(found)
    )


@pytest.mark.parametrize("models", range(8, 30))
def test_the_sums_stand_with_the_last_line(models: int) -> None:
    """Wherever a page ends, its last one has at least one line beside the total."""
    last = next(
        page
        for page in reversed(pages(invoice_pdf(invoice(many_lines(models)))))
        if "Total" in page
    )
    assert re.search(rf"^{models * 3}\s+Output", last, re.MULTILINE)
    assert "Subtotal" in last


def test_nothing_is_drawn_outside_the_page() -> None:
    """Names, models and addresses of any length, and the greatest amounts."""
    long = "Gesellschaft für " + "Donaudampfschifffahrt" * 4
    lines = (
        line(1, "input_tokens", 10**15, 10**12, model="m" * 255),
        line(2, "requests", 10**12, 10**12 + 1, provider="hosted:" + "p" * 60),
    )
    document = invoice(
        lines,
        customer=replace(CUSTOMER, name=long, address=(long,) * 8, reference="R" * 100),
        seller=replace(SELLER, name=long, address=(long,) * 8, bank=(long,) * 6),
        notes=("Note " * 100,),
    )
    for page in pypdfium2.PdfDocument(invoice_pdf(document)):
        written = page.get_textpage()
        for at in range(written.count_rects()):
            left, bottom, right, top = written.get_rect(at)
            assert left >= 40
            assert right <= 555
            assert bottom >= 30
            assert top <= 812


def test_figures_stand_beside_each_other_and_never_on_each_other() -> None:
    """Great quantities, prices and amounts leave room between the columns."""
    lines = (
        line(1, "input_tokens", 999_999_999_999, 999_999_999_999, amount_minor=99999999999900),
    )
    page = pypdfium2.PdfDocument(invoice_pdf(invoice(lines)))[0]
    written = page.get_textpage()
    cells = ["Input tokens", "999,999,999,999", "999,999.999999 per 1M", "999,999,999,999.00"]
    edges: list[object] = []
    for cell in cells:
        found = written.search(cell).get_next()
        assert found is not None, cell
        at, count = found
        edges += [written.get_charbox(at)[0], written.get_charbox(at + count - 1)[2]]
    assert edges == sorted(edges)  # type: ignore[type-var]


@pytest.mark.parametrize(
    "name",
    ["Łódź & Šiauliai", "Ωμέγα ΑΕ", "Щука ООО", "Công ty Nghĩa Đức", "株式会社グローベックス"],
)
def test_names_are_written_in_their_own_letters(name: str) -> None:
    said = text(invoice_pdf(invoice(customer=replace(CUSTOMER, name=name))))
    assert name in said


def test_letters_are_in_the_file() -> None:
    """So that it prints alike everywhere: every font of a document in European letters."""
    reader = PdfReader(BytesIO(invoice_pdf(invoice())))
    fonts = [font.get_object() for font in reader.pages[0]["/Resources"]["/Font"].values()]  # type: ignore[index]
    used = [font for font in fonts if "NotoSans" in str(font["/BaseFont"])]
    assert used
    assert all("/FontFile2" in font["/FontDescriptor"].get_object() for font in used)
    assert reader.metadata is not None
    assert reader.metadata.title == "Invoice INV-2026-000042"


@pytest.mark.parametrize(
    ("currency", "amounts"), [("JPY", ("4", "Total (JPY)")), ("KWD", ("4.000", "Total (KWD)"))]
)
def test_amounts_have_their_currencys_own_decimals(currency: str, amounts: tuple[str, str]) -> None:
    """Yen none, dinars three."""
    minor = {"JPY": 4, "KWD": 4000}[currency]
    lines = (line(1, "input_tokens", 10**7, 400_000, amount_minor=minor, tax_rate_milli_percent=0),)
    no_tax = Tax(name="VAT", note="Reverse charge: the customer owes the tax.")
    document = invoice(lines, currency=currency, totals=totals_of(lines, [no_tax]))
    said = text(invoice_pdf(document))
    assert f"VAT 0 % on {amounts[0]}" in said
    assert amounts[1] in said
    assert said.count("Reverse charge: the customer owes the tax.") == 1


def test_b15_a_period_over_a_change_of_clocks_shows_both_offsets() -> None:
    """B15: October in Berlin begins in summer time and ends in winter time."""
    said = text(invoice_pdf(invoice(period=month("2026-10", "Europe/Berlin"))))
    assert "from 2026-10-01 00:00+02:00 to before 2026-11-01 00:00+01:00, Europe/Berlin" in said


def test_an_invoice_of_nothing_says_so() -> None:
    said = text(invoice_pdf(invoice((), totals=totals_of((), [VAT]), row_count=0)))
    assert "No billable usage in this period." in said
    assert "Nothing is to be paid." in said
    assert "0 usage records" in said


def test_a_credit_note_names_its_invoice_and_its_lines() -> None:
    """What is credited of which line, with its share of the tax."""
    said = text(credit_note_pdf(credit_note()))
    for expected in (
        *("Credit note", "CN-2026-000007", "9 December 2026", "INV-2026-000042"),
        *("Reason: Wrong answers on 12 November", "Invoiced (USD)", "Credited (USD)"),
        *("5.14", "1.00", "6.14", "VAT 19 % on 6.14", "1.17", "7.31"),
        *("Acme Spółka z o.o.", "Weir Operations GmbH", content_hash(credit_note())),
    ):
        assert expected in said, expected
    assert "Please pay" not in said


def test_instants_of_a_document_are_shown_in_utc() -> None:
    late: Document = invoice(cut_off=datetime(2026, 12, 31, 23, 59, 59, tzinfo=UTC))
    assert "2026-12-31 23:59:59 UTC" in text(invoice_pdf(late))
