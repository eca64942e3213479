"""How a line of prices stands at an instant: what holds, and what begins later."""

from collections.abc import Iterable

import msgspec

from billing.domain.price_book import Price


class LineStanding(msgspec.Struct, frozen=True, kw_only=True):
    """Prices of one model, provider, currency, tenant, plan and class."""

    now: Price | None
    """The latest that has begun, also one that withdraws the line; None where none has."""
    later: tuple[Price, ...]
    """Those that begin later, the next first."""
    earlier: int
    """How many held before."""


def standing_of(prices: Iterable[Price], at_ms: int) -> LineStanding:
    """How that line stands at `at_ms` (Unix milliseconds)."""
    ordered = sorted(prices, key=lambda price: price.effective_from_ms)
    begun = [price for price in ordered if price.effective_from_ms <= at_ms]
    return LineStanding(
        now=begun[-1] if begun else None,
        later=tuple(ordered[len(begun) :]),
        earlier=max(0, len(begun) - 1),
    )
