"""An auditor of invoices: computes them anew from records and prices in fractions, by nothing of
the product's own rules, and says what does not hold."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from fractions import Fraction
from math import floor
from zoneinfo import ZoneInfo

from invoice_year import Issued, SeenRow, Year

from billing.domain.price_book import Price
from gateway.domain.instants import ms_of

DECIMALS = {"USD": 2, "JPY": 0, "KWD": 3}
PICO = 10**12
Key = tuple[str, str, str, str, str, int, str]


def audit(year: Year) -> None:
    """Fails with the first thing that is wrong."""
    for invoice in year.invoices:
        audit_rows(year, invoice)
        audit_lines(year, invoice)
        audit_credits(invoice)
    audit_whole(year)


def audit_rows(year: Year, invoice: Issued) -> None:
    """Usage is of the invoice's calendar month, and all of it that was known; an adjustment is of
    an earlier one that had an invoice."""
    document = invoice.document
    for row in invoice.rows:
        own = calendar_month(row, year.zone)
        assert row.billable
        assert (row.tenant_id, row.currency) == ("t", year.currency)
        assert row.seen_at <= row.final_at <= document.cut_off
        if own != document.period.name:
            assert own < document.period.name
            assert own in invoice.invoiced
    assert document.row_count == len(invoice.rows)
    on_it = {id(row) for row in invoice.rows}
    before = year.invoices[: year.invoices.index(invoice)]
    elsewhere = {id(row) for other in before for row in other.rows}
    for row in mine(year):
        known = row.final_at <= document.cut_off
        if known and calendar_month(row, year.zone) == document.period.name:
            assert id(row) in on_it | elsewhere


def audit_lines(year: Year, invoice: Issued) -> None:
    """Each line is what its records used at the price of their arrival, rounded once, a half up;
    no line is missing or there twice; subtotal, tax and total add up."""
    document = invoice.document
    quantities, prices = used(year, invoice)
    lines = {key_of(line): line for line in document.lines}
    assert len(lines) == len(document.lines)
    assert lines.keys() == quantities.keys()
    minor = 10 ** DECIMALS[year.currency]
    for key, line in lines.items():
        money = quantities[key] * prices[key]
        assert line.quantity == quantities[key]
        assert Fraction(line.amount_pico, PICO) == money
        assert line.amount_minor == floor(money * minor + Fraction(1, 2))
    subtotal = sum(line.amount_minor for line in document.lines)
    tax = floor(subtotal * Fraction(year.tax.rate_milli_percent, 100_000) + Fraction(1, 2))
    assert document.totals.subtotal_minor == subtotal
    assert [each.tax_minor for each in document.totals.taxes] == [tax]
    assert document.totals.total_minor == subtotal + tax
    assert [line.position for line in document.lines] == list(range(1, len(lines) + 1))


def audit_credits(invoice: Issued) -> None:
    """No line is credited beyond its amount, nor the invoice beyond its total; with all of its
    lines credited nothing of it is left."""
    given: Counter[int] = Counter()
    for note in invoice.notes:
        assert note.total_minor == note.subtotal_minor + sum(x.tax_minor for x in note.taxes)
        assert note.subtotal_minor == sum(line.amount_minor for line in note.lines)
        for line in note.lines:
            given[line.position] += line.amount_minor
    left = [line.amount_minor - given[line.position] for line in invoice.document.lines]
    assert all(each >= 0 for each in left)
    total = sum(note.total_minor for note in invoice.notes)
    assert total == invoice.standing.credited_minor <= invoice.document.totals.total_minor
    if not any(left):
        assert total == invoice.document.totals.total_minor


def audit_whole(year: Year) -> None:
    """Each record that is to be paid is on one invoice that is not void, none on two; together they
    are what the records cost, to the pico; months have one invoice, numbers no gap."""
    standing = [invoice for invoice in year.invoices if not invoice.void]
    on = Counter(id(row) for invoice in standing for row in invoice.rows)
    assert set(on.values()) <= {1}
    assert on.keys() == {id(row) for row in mine(year)}
    billed = sum(line.amount_pico for each in standing for line in each.document.lines)
    assert billed == sum(row.cost_pico or 0 for row in mine(year))
    months = [invoice.document.period.name for invoice in standing]
    assert len(set(months)) == len(months) == 13
    assert months_touch(year)


def months_touch(year: Year) -> bool:
    return all(a.end == b.start for a, b in zip(year.months, year.months[1:], strict=False))


def mine(year: Year) -> Iterable[SeenRow]:
    """What the tenant is to pay for in this currency."""
    for row in year.rows:
        if row.billable and (row.tenant_id, row.currency) == ("t", year.currency):
            yield row


def calendar_month(row: SeenRow, zone: str) -> str:
    """By the clock on the wall."""
    return f"{row.admitted_at.astimezone(ZoneInfo(zone)):%Y-%m}"


def price_of(year: Year, row: SeenRow) -> Price:
    """The price of its arrival: the tenant's before the list's, the class's before that of both,
    then the latest that had begun."""
    at_ms = ms_of(row.admitted_at) or 0
    held = [
        price
        for price in year.prices
        if (price.model, price.provider) == (row.model, row.provider)
        and price.tenant_id in {None, "t"}
        and price.request_class in {None, row.request_class}
        and price.effective_from_ms <= at_ms
    ]
    return max(
        held,
        key=lambda price: (
            price.tenant_id is not None,
            price.request_class is not None,
            price.effective_from_ms,
        ),
    )


def used(year: Year, invoice: Issued) -> tuple[dict[Key, int], dict[Key, Fraction]]:
    """How much of each unit, and what one of it costs."""
    quantities: defaultdict[Key, int] = defaultdict(int)
    prices: dict[Key, Fraction] = {}
    for row in invoice.rows:
        price, own = price_of(year, row), calendar_month(row, year.zone)
        kind = "usage" if own == invoice.document.period.name else "adjustment"
        cached = min(row.cached_prompt_tokens, row.prompt_tokens)
        reasoning = min(row.reasoning_tokens, row.output_tokens)
        cached_pico, reasoning_pico = price.cached_input_pico, price.reasoning_pico
        for unit, quantity, pico in (
            ("input_tokens", row.prompt_tokens - cached, price.input_pico),
            (
                "cached_input_tokens",
                cached,
                price.input_pico if cached_pico is None else cached_pico,
            ),
            ("output_tokens", row.output_tokens - reasoning, price.output_pico),
            (
                "reasoning_tokens",
                reasoning,
                price.output_pico if reasoning_pico is None else reasoning_pico,
            ),
            ("requests", 1 if price.request_pico else 0, price.request_pico),
        ):
            if quantity:
                place = (kind, own, row.model, row.provider, row.request_class, price.id, unit)
                quantities[place] += quantity
                prices[place] = Fraction(pico, PICO)
    return dict(quantities), prices


def key_of(line: object) -> Key:
    """What a line is of."""
    names = ("kind", "month", "model", "provider", "request_class", "price_id", "unit")
    kind, *rest = (getattr(line, name) for name in names)
    return (kind.value, *rest)
