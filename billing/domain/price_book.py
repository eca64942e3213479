"""List prices, each from an instant on until the next of the same model, provider and currency.

A price is never changed and never taken back: what follows it begins later.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from operator import attrgetter
from typing import NamedTuple

import msgspec

PRICE_PICO_MAX = 10**12
"""Pico-units of the currency per token: one whole unit per token, which is 10**6 a million tokens
and dear in any currency."""


class Price(msgspec.Struct, frozen=True, kw_only=True):
    """What one token costs, in pico-units of `currency` (so micro-units per million tokens)."""

    id: int
    model: str
    provider: str
    """Who serves it: `self`, or `hosted:<name>`."""
    currency: str
    input_pico: int
    cached_input_pico: int | None = None
    """None: a cached prompt token costs what any prompt token costs."""
    output_pico: int
    """Reasoning tokens are output tokens and cost the same."""
    effective_from_ms: int
    """Unix milliseconds; it holds for requests that are admitted at or after it."""


class PricedThing(NamedTuple):
    """What a line of prices is for."""

    model: str
    provider: str
    currency: str


class PriceBook:
    """Every list price. It does not change: what learns of a price makes a new book."""

    def __init__(self, prices: Iterable[Price] = ()) -> None:
        """Raises ValueError where two prices of one thing begin at the same instant: which of them
        holds would be chance."""
        lines: defaultdict[PricedThing, list[Price]] = defaultdict(list)
        for price in prices:
            lines[PricedThing(price.model, price.provider, price.currency)].append(price)
        for thing, line in lines.items():
            line.sort(key=attrgetter("effective_from_ms"))
            begins = [price.effective_from_ms for price in line]
            if len(set(begins)) < len(begins):
                raise ValueError(f"two prices of {thing} begin at the same instant")
        self._lines = dict(lines)

    def price_at(self, model: str, provider: str, currency: str, at_ms: int) -> Price | None:
        """The price that holds for a request admitted at `at_ms` (Unix milliseconds), or None where
        there is none: then the request is unpriced, never free. Names match whole, never in part,
        and no other provider's or currency's price stands in."""
        line = self._lines.get(PricedThing(model, provider, currency), [])
        begun = bisect_right(line, at_ms, key=attrgetter("effective_from_ms"))
        return line[begun - 1] if begun else None

    def has_currency(self, currency: str) -> bool:
        """Whether any price, also one that begins later, is in that currency."""
        return any(thing.currency == currency for thing in self._lines)
