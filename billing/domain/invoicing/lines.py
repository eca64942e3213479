"""From summed usage to an invoice's lines: an ordered list of pure steps, exact until the last.

A line is a quantity times a unit price, which a calculator checks; only its amount is rounded.
"""

from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

from billing.domain.invoicing.rounding import minor_of
from billing.domain.invoicing.tax import Tax
from billing.domain.invoicing.usage_group import LineKind, UsageGroup
from billing.domain.money import show_amount
from billing.domain.price_book import Price

INPUT_TOKENS = "input_tokens"
CACHED_INPUT_TOKENS = "cached_input_tokens"
OUTPUT_TOKENS = "output_tokens"
REASONING_TOKENS = "reasoning_tokens"
REQUESTS = "requests"
UNITS = (INPUT_TOKENS, CACHED_INPUT_TOKENS, OUTPUT_TOKENS, REASONING_TOKENS, REQUESTS)
"""What a line counts, in the order of an invoice."""
TOKENS_PER_PRICE = 10**6
"""Tokens that a price is told for; a request's is told for one."""


class LinesDisagree(ValueError):
    """Lines would not sum to what the records say: nothing may be issued from them."""


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """A position of an invoice. `quantity * unit_price_pico` is `amount_pico`, exactly."""

    position: int
    """From 1, without gaps."""
    kind: LineKind
    month: str
    """As `2026-11`: that of the usage."""
    model: str
    provider: str
    request_class: str
    unit: str
    """One of UNITS."""
    quantity: int
    price_id: int
    unit_price_pico: int
    """Pico-units of the currency per token, or per request."""
    amount_pico: int
    """Beyond 64 bits where the currency is small and the quantity great."""
    amount_minor: int
    """Rounded once, a half away from zero."""
    tax_rate_milli_percent: int


def lines_of(groups: Iterable[UsageGroup], currency: str, tax: Tax) -> tuple[Line, ...]:
    """The lines of an invoice in that currency, in their one order, whatever order groups have.

    A quantity of 0 has no line; one at a price of 0 has a line of 0, except requests: a price that
    says nothing of requests has no line for them. Raises UnknownCurrency, and LinesDisagree where a
    group's own price does not make its cost.
    """
    checked = tuple(_checked(group, currency) for group in groups)
    counted = tuple(line for group in checked for line in _counted(group))
    merged = _merged(counted)
    ordered = tuple(sorted(merged, key=_order))
    priced = tuple(_priced(line) for line in ordered)
    rounded = tuple(_rounded(line, currency) for line in priced)
    taxed = tuple(replace(line, tax_rate_milli_percent=tax.rate_milli_percent) for line in rounded)
    return _agreed(_numbered(taxed), checked)


def show_unit_price(line: Line, currency: str) -> str:
    """A line's price in decimal digits, exactly: for a million tokens, or for one request."""
    told_for = 1 if line.unit == REQUESTS else TOKENS_PER_PRICE
    return show_amount(line.unit_price_pico * told_for, currency)


def _checked(group: UsageGroup, currency: str) -> UsageGroup:
    if group.price.currency != currency:
        raise LinesDisagree(f"price {group.price.id} is in {group.price.currency}, not {currency}")
    if any(quantity < 0 for _, quantity, _ in _quantities(group)):
        raise LinesDisagree(f"{group.month} {group.model}: a quantity is negative")
    exact = sum(quantity * unit_price for _, quantity, unit_price in _quantities(group))
    if exact != group.cost_pico:
        raise LinesDisagree(
            f"{group.month} {group.model} {group.provider} {group.request_class} at price "
            f"{group.price.id}: quantities make {exact} pico {currency}, records {group.cost_pico}"
        )
    return group


def _quantities(group: UsageGroup) -> tuple[tuple[str, int, int], ...]:
    """Unit, quantity and price in pico-units of each."""
    price = group.price
    return (
        (INPUT_TOKENS, group.uncached_prompt_tokens, price.input_pico),
        (CACHED_INPUT_TOKENS, group.cached_prompt_tokens, _cached_pico(price)),
        (OUTPUT_TOKENS, group.output_tokens, price.output_pico),
        (REASONING_TOKENS, group.reasoning_tokens, _reasoning_pico(price)),
        (REQUESTS, group.requests, price.request_pico),
    )


def _cached_pico(price: Price) -> int:
    return price.input_pico if price.cached_input_pico is None else price.cached_input_pico


def _reasoning_pico(price: Price) -> int:
    return price.output_pico if price.reasoning_pico is None else price.reasoning_pico


def _counted(group: UsageGroup) -> tuple[Line, ...]:
    return tuple(
        Line(
            position=0,
            kind=group.kind,
            month=group.month,
            model=group.model,
            provider=group.provider,
            request_class=group.request_class,
            unit=unit,
            quantity=quantity,
            price_id=group.price.id,
            unit_price_pico=unit_price_pico,
            amount_pico=0,
            amount_minor=0,
            tax_rate_milli_percent=0,
        )
        for unit, quantity, unit_price_pico in _quantities(group)
        if quantity and (unit != REQUESTS or unit_price_pico)
    )


def _merged(lines: Iterable[Line]) -> tuple[Line, ...]:
    """One line for what differs in nothing but its quantity."""
    merged: dict[tuple[object, ...], Line] = {}
    for line in lines:
        key = _order(line)
        known = merged.get(key)
        if known is not None and known.unit_price_pico != line.unit_price_pico:
            raise LinesDisagree(f"price {line.price_id} has two prices of {line.unit}")
        quantity = line.quantity + (0 if known is None else known.quantity)
        merged[key] = replace(line, quantity=quantity)
    return tuple(merged.values())


def _order(line: Line) -> tuple[object, ...]:
    """Usage first, then adjustments by month; prices in the order in which they were written."""
    return (
        line.kind is LineKind.ADJUSTMENT,
        line.month,
        line.model,
        line.provider,
        line.request_class,
        line.price_id,
        UNITS.index(line.unit),
    )


def _priced(line: Line) -> Line:
    return replace(line, amount_pico=line.quantity * line.unit_price_pico)


def _rounded(line: Line, currency: str) -> Line:
    return replace(line, amount_minor=minor_of(line.amount_pico, currency))


def _numbered(lines: tuple[Line, ...]) -> tuple[Line, ...]:
    return tuple(replace(line, position=index) for index, line in enumerate(lines, start=1))


def _agreed(lines: tuple[Line, ...], groups: tuple[UsageGroup, ...]) -> tuple[Line, ...]:
    billed = sum(line.amount_pico for line in lines)
    recorded = sum(group.cost_pico for group in groups)
    if billed != recorded:
        raise LinesDisagree(f"lines make {billed} pico, records {recorded}")
    return lines
