"""Documents to print: small ones, and one over many pages."""

from datetime import UTC, date, datetime
from typing import Any

from msgspec.structs import replace

from billing.domain.invoicing.credit import CreditLine, credit
from billing.domain.invoicing.document import CreditDocument, Document
from billing.domain.invoicing.lines import UNITS, Line
from billing.domain.invoicing.party import Customer, Seller
from billing.domain.invoicing.periods import month
from billing.domain.invoicing.rounding import minor_of
from billing.domain.invoicing.tax import Tax
from billing.domain.invoicing.totals import totals_of
from billing.domain.invoicing.usage_group import LineKind

VAT = Tax(rate_milli_percent=19_000, name="VAT")
SELLER = Seller(
    name="Weir Operations GmbH",
    address=("Wehrstraße 12", "10115 Berlin"),
    country="DE",
    tax_id="DE123456789",
    email="billing@weir.example",
    bank=("Musterbank Berlin", "IBAN DE02 1203 0000 0000 2020 51", "BIC BYLADEM1001"),
    time_zone="Europe/Berlin",
)
CUSTOMER = Customer(
    tenant_id="acme",
    name="Acme Spółka z o.o.",
    address=("ul. Długa 44/50", "00-241 Warszawa"),
    country="PL",
    tax_id="PL5260250995",
    email="ap@acme.example",
    reference="PO-4711",
)


def line(position: int, unit: str, quantity: int, price: int, **changes: Any) -> Line:
    """A line of USD with its amounts."""
    pico = quantity * price
    made = Line(
        position=position,
        kind=LineKind.USAGE,
        month="2026-11",
        model="smollm2-135m",
        provider="self",
        request_class="interactive",
        unit=unit,
        quantity=quantity,
        price_id=1,
        unit_price_pico=price,
        amount_pico=pico,
        amount_minor=minor_of(pico, "USD"),
        tax_rate_milli_percent=VAT.rate_milli_percent,
    )
    return replace(made, **changes)


LINES = (
    line(1, "input_tokens", 12_345_678, 400_000),
    line(2, "cached_input_tokens", 2_000_000, 100_000),
    line(3, "output_tokens", 3_210_987, 1_600_000),
    line(4, "requests", 41_000, 500_000_000),
    line(5, "input_tokens", 700, 200_000, request_class="batch", provider="hosted:elsewhere"),
    line(6, "output_tokens", 55_000, 1_600_000, kind=LineKind.ADJUSTMENT, month="2026-10"),
)


def invoice(lines: tuple[Line, ...] = LINES, **changes: Any) -> Document:
    """An issued invoice of November."""
    made = Document(
        invoice_id="018f0000-0000-7000-8000-000000000001",
        number="INV-2026-000042",
        currency="USD",
        issued_at=datetime(2026, 12, 1, 8, 30, tzinfo=UTC),
        issued_on=date(2026, 12, 1),
        due_on=date(2026, 12, 31),
        seller=SELLER,
        customer=CUSTOMER,
        period=month("2026-11", "Europe/Berlin"),
        lines=lines,
        totals=changes.pop("totals", None) or totals_of(lines, [VAT]),
        row_count=41_321,
        cut_off=datetime(2026, 12, 1, 8, 30, tzinfo=UTC),
    )
    return replace(made, **changes)


def draft(lines: tuple[Line, ...] = LINES, **changes: Any) -> Document:
    """The same before it was issued."""
    unissued: dict[str, Any] = dict.fromkeys(("number", "issued_at", "issued_on", "due_on"))
    return invoice(lines, **{**unissued, **changes})


def credit_note(invoiced: Document | None = None) -> CreditDocument:
    """A credit of a part of lines 1 and 3."""
    of = invoice() if invoiced is None else invoiced
    assert of.seller is not None
    wanted = [CreditLine(position=1, amount_minor=100), CreditLine(position=3, amount_minor=514)]
    note = credit(of.lines, of.totals, [], wanted, "Wrong answers on 12 November")
    cited = {each.position for each in note.lines}
    return CreditDocument(
        credit_note_id="018f0000-0000-7000-8000-000000000002",
        number="CN-2026-000007",
        invoice_id=of.invoice_id,
        invoice_number=str(of.number),
        invoice_issued_on=date(2026, 12, 1),
        currency=of.currency,
        issued_at=datetime(2026, 12, 9, 8, 30, tzinfo=UTC),
        issued_on=date(2026, 12, 9),
        seller=of.seller,
        customer=of.customer,
        period=of.period,
        lines=tuple(each for each in of.lines if each.position in cited),
        note=note,
    )


def many_lines(models: int) -> tuple[Line, ...]:
    """Lines of so many models, three each."""
    return tuple(
        line(
            index * 3 + place + 1,
            UNITS[place],
            1_000_003 + index * 7919,
            400_000 + place,
            model=f"model-{index:03}",
        )
        for index in range(models)
        for place in range(3)
    )
