"""The invoices in `tests/golden/invoices`, which a person checks with a calculator."""

import re
import tomllib
from datetime import timedelta
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

import pytest
from invoice_examples import CUSTOMER, SELLER, a_document
from invoice_rows import UsedRow, groups_of, placed, rate_row
from msgspec.structs import replace

from billing.domain.invoicing.credit import CreditLine, CreditNote, credit, left_to_credit
from billing.domain.invoicing.document import Document, canonical_bytes, due_on, read_document
from billing.domain.invoicing.lines import lines_of, show_unit_price
from billing.domain.invoicing.numbering import date_of_issue, number_of, series_of
from billing.domain.invoicing.periods import month
from billing.domain.invoicing.rounding import show_minor
from billing.domain.invoicing.tax import Tax, parse_tax_rate
from billing.domain.invoicing.totals import totals_of
from billing.domain.money import show_amount
from billing.domain.price_book import Price, PriceBook
from gateway.domain.instants import ms_of

GOLDEN = Path(__file__).parents[4] / "golden" / "invoices"
FOLDERS = sorted(path.parent for path in GOLDEN.glob("*/usage.toml"))
EACH = pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
SUM = re.compile(
    r"^ +(\d+) +(\d+) x +([\d.]+) / (1|1000000) += ([\d.]+) +-> ([\d.]+)$", re.MULTILINE
)


def read(folder: Path, name: str) -> dict[str, Any]:
    return tomllib.loads((folder / name).read_text())


def a_price_of(said: dict[str, Any], currency: str) -> Price:
    """Texts to whole pico-units: a million tokens' price has six digits less."""

    def pico(name: str, digits: int) -> int | None:
        return int(Decimal(said[name]).scaleb(digits)) if name in said else None

    return Price(
        id=said["id"],
        model=said["model"],
        provider=said.get("provider", "self"),
        currency=currency,
        request_class=said.get("class"),
        input_pico=pico("input", 6) or 0,
        cached_input_pico=pico("cached_input", 6),
        output_pico=pico("output", 6) or 0,
        reasoning_pico=pico("reasoning", 6),
        request_pico=pico("request", 12) or 0,
        effective_from_ms=ms_of(said["from"]) or 0,
    )


def rows_of(usage: dict[str, Any]) -> list[UsedRow]:
    """The records, each rated at the price of its arrival."""
    book = PriceBook([a_price_of(said, usage["currency"]) for said in usage["prices"]])
    rows = [
        UsedRow(
            admitted_at=said["at"],
            currency=usage["currency"],
            model=said["model"],
            provider=said.get("provider", "self"),
            request_class=said.get("class", "interactive"),
            prompt_tokens=said["prompt"],
            cached_prompt_tokens=said.get("cached", 0),
            output_tokens=said["output"],
            reasoning_tokens=said.get("reasoning", 0),
            billable=said.get("billable", True),
        )
        for said in usage["rows"]
        for _ in range(said.get("times", 1))
    ]
    return [rate_row(row, book) for row in rows]


def invoice_of(usage: dict[str, Any]) -> Document:
    """From records to a document, by the product's own rules."""
    period, currency = month(usage["period"], usage["time_zone"]), usage["currency"]
    found = placed(rows_of(usage), period=period, invoiced=usage["invoiced"], currency=currency)
    said = usage["tax"]
    tax = Tax(
        rate_milli_percent=parse_tax_rate(said["rate"]),
        name=said["name"],
        note=said.get("note", ""),
    )
    lines = lines_of(groups_of(found), currency, tax)
    issued_at = period.end + timedelta(hours=36)
    issued_on = date_of_issue(issued_at, SELLER.time_zone)
    return replace(
        a_document(),
        number=number_of(series_of(SELLER.invoice_prefix, issued_on), 1),
        issued_at=issued_at,
        issued_on=issued_on,
        due_on=due_on(issued_on, 30),
        cut_off=issued_at - timedelta(milliseconds=1),
        currency=currency,
        seller=SELLER,
        customer=CUSTOMER,
        period=period,
        lines=lines,
        totals=totals_of(lines, [tax]),
        row_count=len(found),
    )


@EACH
def test_inv_7_rows_and_prices_make_the_invoice_that_was_written_by_hand(folder: Path) -> None:
    """Lines in order, with what each shows, and totals."""
    expected, document = read(folder, "invoice.toml"), invoice_of(read(folder, "usage.toml"))
    currency = document.currency
    lines = [
        [
            line.kind.value,
            line.month,
            line.model,
            line.provider,
            line.request_class,
            line.price_id,
            line.unit,
            line.quantity,
            show_unit_price(line, currency),
            show_minor(line.amount_minor, currency),
        ]
        for line in document.lines
    ]
    assert lines == expected["lines"]
    exact = show_amount(sum(line.amount_pico for line in document.lines), currency)
    totals, (tax,) = document.totals, document.totals.taxes
    shown = [totals.subtotal_minor, tax.tax_minor, totals.total_minor]
    assert [exact, *(show_minor(minor, currency) for minor in shown), document.row_count] == [
        expected[name] for name in ("exact", "subtotal", "tax", "total", "rows")
    ]


@EACH
def test_its_period_number_and_dates(folder: Path) -> None:
    """Issued 36 hours after its end; the dates are those of the seller, in London."""
    expected, document = read(folder, "invoice.toml"), invoice_of(read(folder, "usage.toml"))
    assert [document.period.start, document.period.end] == expected["period"]
    assert [document.number, document.issued_on, document.due_on] == [
        expected[name] for name in ("number", "issued_on", "due_on")
    ]


@EACH
def test_inv_7_every_line_checks_with_a_calculator(folder: Path) -> None:
    """The sums that are written out have each line of the invoice, and are right."""
    lines = read(folder, "invoice.toml")["lines"]
    sums = SUM.findall((folder / "sums.txt").read_text())
    assert len(sums) == len(lines)
    for position, (line, written) in enumerate(zip(lines, sums, strict=True), 1):
        at, quantity, price, told_for, exact, rounded = written
        assert [int(at), int(quantity), price, rounded] == [position, line[7], *line[8:]]
        assert told_for == ("1" if line[6] == "requests" else "1000000")
        assert Decimal(quantity) * Decimal(price) / Decimal(told_for) == Decimal(exact)
        assert Decimal(exact).quantize(Decimal(rounded), ROUND_HALF_UP) == Decimal(rounded)


@EACH
def test_inv_7_a_document_is_the_same_bytes_for_ever(folder: Path) -> None:
    """As it was stored by an earlier release, and as it is read again."""
    stored = (folder / "document.json").read_bytes()
    assert canonical_bytes(invoice_of(read(folder, "usage.toml"))) == stored
    assert canonical_bytes(read_document(stored)) == stored


def test_v14_credit_notes_that_were_written_by_hand() -> None:
    """A part of a line and a whole one, then all the rest: together the invoice."""
    document = invoice_of(read(GOLDEN / "usd", "usage.toml"))
    notes: list[CreditNote] = []
    expected = read(GOLDEN / "usd", "invoice.toml")["credit_notes"]
    for said in expected:
        cited = (
            left_to_credit(document.lines, notes)
            if said["cites"] == "rest"
            else [
                CreditLine(position=position, amount_minor=int(Decimal(amount).scaleb(2)))
                for position, amount in said["cites"]
            ]
        )
        note = credit(document.lines, document.totals, notes, cited, "r")
        shown = (note.subtotal_minor, note.taxes[0].tax_minor, note.total_minor)
        assert [show_minor(minor, "USD") for minor in shown] == [
            said[name] for name in ("subtotal", "tax", "total")
        ]
        notes.append(note)
    assert sum(note.total_minor for note in notes) == document.totals.total_minor
    assert left_to_credit(document.lines, notes) == ()
