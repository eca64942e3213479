"""What Postgres sums up for an invoice: tokens and requests at one price, of one month."""

from enum import StrEnum

import msgspec

from billing.domain.price_book import Price


class LineKind(StrEnum):
    """Why something is on an invoice."""

    USAGE = "usage"
    """Admitted in the invoice's own period."""
    ADJUSTMENT = "adjustment"
    """Of an earlier month whose invoice was issued before the record was seen."""


class UsageGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Records of one kind, month, model, provider, class and price, summed up.

    The four token counts share nothing: each record's are clamped as `rating.cost_pico` does
    before they are added, so the cached are a part of the prompt and the reasoning of the output.
    """

    kind: LineKind
    month: str
    """As `2026-11`: that of the records, which for an adjustment is not the invoice's."""
    model: str
    provider: str
    request_class: str
    """`interactive` or `batch`."""
    price: Price
    requests: int
    uncached_prompt_tokens: int
    cached_prompt_tokens: int
    output_tokens: int
    """Without the reasoning tokens."""
    reasoning_tokens: int
    cost_pico: int
    """Sum of what the records say that the tenant owes."""
