"""Groups, lines and parties of invoices for tests, with what the test is about."""

from datetime import UTC, date, datetime

from msgspec.structs import replace
from price_examples import a_price

from billing.domain.invoicing.document import Document
from billing.domain.invoicing.lines import INPUT_TOKENS, Line, lines_of
from billing.domain.invoicing.party import Customer, Seller
from billing.domain.invoicing.periods import month
from billing.domain.invoicing.tax import Tax
from billing.domain.invoicing.totals import totals_of
from billing.domain.invoicing.usage_group import LineKind, UsageGroup
from billing.domain.price_book import Price

VAT = Tax(rate_milli_percent=20_000, name="VAT")
SELLER = Seller(
    name="Weir Example Ltd",
    address=("1 Mill Lane", "Bath BA1 1AA"),
    country="GB",
    tax_id="GB000000000",
    email="billing@example.com",
    bank=("IBAN GB00 EXAM 0000 0000 0000 00",),
    time_zone="Europe/London",
)
CUSTOMER = Customer(
    tenant_id="t", name="Łódź Zażółć Sp. z o.o.", address=("ul. Długa 1",), country="PL"
)


def a_group(price: Price | None = None, **changes: object) -> UsageGroup:
    """Nothing of `m` in November 2026, interactive, at a price for it; a group's cost is what its
    quantities make, unless the test says another."""
    at = a_price() if price is None else price
    group = UsageGroup(
        kind=LineKind.USAGE,
        month="2026-11",
        model=at.model,
        provider=at.provider,
        request_class="interactive",
        price=at,
        requests=0,
        uncached_prompt_tokens=0,
        cached_prompt_tokens=0,
        output_tokens=0,
        reasoning_tokens=0,
        cost_pico=0,
    )
    group = replace(group, **changes)
    cached = at.input_pico if at.cached_input_pico is None else at.cached_input_pico
    reasoning = at.output_pico if at.reasoning_pico is None else at.reasoning_pico
    makes = (
        group.uncached_prompt_tokens * at.input_pico
        + group.cached_prompt_tokens * cached
        + group.output_tokens * at.output_pico
        + group.reasoning_tokens * reasoning
        + group.requests * at.request_pico
    )
    return group if "cost_pico" in changes else replace(group, cost_pico=makes)


def a_line(position: int, amount_minor: int, tax: Tax = VAT, **changes: object) -> Line:
    """A line of an amount in cents: so many million tokens at 0.01 a million."""
    line = Line(
        position=position,
        kind=LineKind.USAGE,
        month="2026-11",
        model=f"m{position}",
        provider="self",
        request_class="interactive",
        unit=INPUT_TOKENS,
        quantity=amount_minor * 10**6,
        price_id=position,
        unit_price_pico=10**4,
        amount_pico=amount_minor * 10**10,
        amount_minor=amount_minor,
        tax_rate_milli_percent=tax.rate_milli_percent,
    )
    return replace(line, **changes)


def a_document(*groups: UsageGroup, currency: str = "USD", tax: Tax = VAT) -> Document:
    """An invoice of November 2026 in Warsaw, issued on 2 December."""
    lines = lines_of(groups, currency, tax)
    return Document(
        invoice_id="01936f2e-0000-7000-8000-000000000001",
        number="INV-2026-000001",
        currency=currency,
        issued_at=datetime(2026, 12, 2, 9, 30, tzinfo=UTC),
        issued_on=date(2026, 12, 2),
        due_on=date(2027, 1, 1),
        seller=SELLER,
        customer=CUSTOMER,
        period=month("2026-11", "Europe/Warsaw"),
        lines=lines,
        totals=totals_of(lines, [tax]),
        row_count=sum(group.requests for group in groups),
        cut_off=datetime(2026, 12, 2, 9, 29, 59, 123456, tzinfo=UTC),
        notes=("Thank you.",),
    )
