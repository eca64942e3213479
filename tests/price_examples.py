"""A list price for tests, with what the test is about."""

from msgspec.structs import replace

from billing.domain.price_book import Price

_PRICE = Price(
    id=7,
    model="m",
    provider="self",
    currency="USD",
    input_pico=1_000_000,
    cached_input_pico=100_000,
    output_pico=4_000_000,
    effective_from_ms=0,
)


def a_price(**changes: object) -> Price:
    """Of `m` on our own workers, in USD, from the beginning of time on: 1.00 for a million prompt
    tokens, 0.10 for cached ones, 4.00 for output."""
    return replace(_PRICE, **changes)
