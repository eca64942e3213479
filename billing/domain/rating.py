"""What a request costs: whole tokens times whole pico-units, and the price of a request, so that
nothing is ever rounded."""

from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from billing.domain.price_book import Price, PriceBook
from billing.domain.usage_record import UsageRecord

COST_PICO_MAX = 2**63 - 1
"""The most that a cost's column holds."""


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """The money of a usage record, in pico-units of `currency`.

    `cost_pico` is what the tenant owes: 0 where the outcome is not billable, None where there is no
    price. `list_cost_pico` is what the price book makes of the tokens, billable or not.
    """

    price_id: int | None
    cost_pico: int | None
    list_cost_pico: int | None
    currency: str


def cost_pico(
    price: Price,
    *,
    prompt_tokens: int,
    cached_tokens: int,
    output_tokens: int,
    reasoning_tokens: int = 0,
) -> int:
    """What a request of these tokens costs, exactly.

    `cached_tokens` are a part of the prompt and `reasoning_tokens` of the output; what an engine
    says beyond the whole is not counted. Raises ValueError for a negative prompt or output.
    """
    if prompt_tokens < 0 or output_tokens < 0:
        raise ValueError("token counts are never negative")
    cached = min(max(cached_tokens, 0), prompt_tokens)
    reasoning = min(max(reasoning_tokens, 0), output_tokens)
    return (
        (prompt_tokens - cached) * price.input_pico
        + cached * _cached_input_pico(price)
        + (output_tokens - reasoning) * price.output_pico
        + reasoning * _reasoning_pico(price)
        + price.request_pico
    )


def most_pico(price: Price, *, prompt_tokens: int, output_tokens: int) -> int:
    """The most that a request of so many tokens can cost, whatever part of the prompt turns out to
    be cached and of the output reasoning: never less than `cost_pico` of as many or fewer."""
    dearest = dearest_of(price)
    return (
        prompt_tokens * dearest.input_pico
        + output_tokens * dearest.output_pico
        + price.request_pico
    )


class Dearest(NamedTuple):
    """What one token of a prompt and one of an output can cost at most."""

    input_pico: int
    output_pico: int


def dearest_of(price: Price) -> Dearest:
    """The dearest kinds of tokens of a price."""
    return Dearest(
        input_pico=max(price.input_pico, _cached_input_pico(price)),
        output_pico=max(price.output_pico, _reasoning_pico(price)),
    )


def rate(
    book: PriceBook,
    *,
    model: str,
    provider: str,
    currency: str,
    admitted_at_ms: int,
    prompt_tokens: int,
    cached_tokens: int,
    output_tokens: int,
    reasoning_tokens: int,
    billable: bool,
    tenant_id: str | None = None,
    request_class: str | None = None,
) -> Cost:
    """The cost of a request at the price that held for the tenant, its class and `provider` when it
    was admitted.

    A cost beyond COST_PICO_MAX, which no real request reaches, leaves it unpriced: shown and held
    back, where a smaller figure would be wrong.
    """
    price = book.price_at(
        model,
        provider,
        currency,
        admitted_at_ms,
        tenant_id=tenant_id,
        request_class=request_class,
    )
    listed = None
    if price is not None:
        listed = cost_pico(
            price,
            prompt_tokens=prompt_tokens,
            cached_tokens=cached_tokens,
            output_tokens=output_tokens,
            reasoning_tokens=reasoning_tokens,
        )
    if listed is not None and listed > COST_PICO_MAX:
        price = listed = None
    return Cost(
        price_id=None if price is None else price.id,
        cost_pico=listed if billable else 0,
        list_cost_pico=listed,
        currency=currency,
    )


def rated(record: UsageRecord, book: PriceBook, currency: str | None) -> UsageRecord:
    """The record with its cost in `currency`, the tenant's when it was admitted. Where nobody knows
    that currency (None) the record is as it was, without a cost."""
    if currency is None:
        return record
    cost = rate(
        book,
        model=record.model,
        provider=record.provider,
        currency=currency,
        admitted_at_ms=record.admitted_at_ms,
        prompt_tokens=record.prompt_tokens,
        cached_tokens=record.cached_prompt_tokens,
        output_tokens=record.output_tokens,
        reasoning_tokens=record.reasoning_tokens,
        billable=record.billable,
        tenant_id=record.tenant_id,
        request_class=record.request_class,
    )
    return replace(
        record,
        price_id=cost.price_id,
        cost_pico=cost.cost_pico,
        list_cost_pico=cost.list_cost_pico,
        currency=cost.currency,
    )


def _cached_input_pico(price: Price) -> int:
    return price.input_pico if price.cached_input_pico is None else price.cached_input_pico


def _reasoning_pico(price: Price) -> int:
    return price.output_pico if price.reasoning_pico is None else price.reasoning_pico
