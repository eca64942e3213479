"""The specification of what Postgres does for an invoice: which usage records are on it, summed up
one by one. Stores are compared with it."""

from collections.abc import Container, Iterable
from datetime import datetime
from typing import TypeVar

import msgspec

from billing.domain.invoicing.membership import Place, Row, place_of
from billing.domain.invoicing.periods import Month
from billing.domain.invoicing.usage_group import UsageGroup
from billing.domain.price_book import Price, PriceBook
from billing.domain.rating import cost_pico
from gateway.domain.instants import ms_of


class UsedRow(msgspec.Struct, kw_only=True):
    """A usage record as an invoice sees it."""

    admitted_at: datetime
    tenant_id: str = "t"
    currency: str = "USD"
    model: str = "m"
    provider: str = "self"
    request_class: str = "interactive"
    prompt_tokens: int = 0
    cached_prompt_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    billable: bool = True
    final: bool = True
    price: Price | None = None
    cost_pico: int | None = None
    invoice: str | None = None
    """The invoice, not void, that it is on."""


Used = TypeVar("Used", bound=UsedRow)


def rate_row(row: Used, book: PriceBook) -> Used:
    """The row with the price of its arrival, for good."""
    row.price = book.price_at(
        row.model,
        row.provider,
        row.currency,
        ms_of(row.admitted_at) or 0,
        tenant_id=row.tenant_id,
        request_class=row.request_class,
    )
    if row.price is not None:
        row.cost_pico = cost_pico(
            row.price,
            prompt_tokens=row.prompt_tokens,
            cached_tokens=row.cached_prompt_tokens,
            output_tokens=row.output_tokens,
            reasoning_tokens=row.reasoning_tokens,
        )
    return row


def placed(
    rows: Iterable[Used],
    *,
    period: Month,
    invoiced: Container[str] = (),
    printed: Iterable[Month] = (),
    tenant_id: str = "t",
    currency: str = "USD",
) -> list[tuple[Used, Place]]:
    """The rows that an invoice has, and where each goes."""
    found = []
    for row in rows:
        judged = Row(
            tenant_id=row.tenant_id,
            currency=row.currency,
            admitted_at=row.admitted_at,
            billable=row.billable,
            final=row.final,
            invoice=row.invoice,
        )
        place = place_of(
            judged,
            tenant_id=tenant_id,
            currency=currency,
            period=period,
            invoiced=invoiced,
            printed=printed,
        )
        if place is not None:
            found.append((row, place))
    return found


def group_of(row: UsedRow, place: Place) -> UsageGroup:
    """A group of that one record: lines add up what differs in nothing else."""
    assert row.price is not None
    assert row.cost_pico is not None
    cached = min(max(row.cached_prompt_tokens, 0), row.prompt_tokens)
    reasoning = min(max(row.reasoning_tokens, 0), row.output_tokens)
    return UsageGroup(
        kind=place.kind,
        month=place.month,
        model=row.model,
        provider=row.provider,
        request_class=row.request_class,
        price=row.price,
        requests=1,
        uncached_prompt_tokens=row.prompt_tokens - cached,
        cached_prompt_tokens=cached,
        output_tokens=row.output_tokens - reasoning,
        reasoning_tokens=reasoning,
        cost_pico=row.cost_pico,
    )


def groups_of(found: Iterable[tuple[Used, Place]]) -> list[UsageGroup]:
    """A group for each record on an invoice."""
    return [group_of(row, place) for row, place in found]
