"""Usage and costs as OpenAI's objects, from sums; also for the OpenAPI document. What OpenAI's
objects have no place for stands beside it: whether anything may be missing, and what is unpriced.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec

from billing.domain.cost_lines import CostLine, Rated, cost_lines
from billing.domain.money import show_amount
from billing.domain.price_book import Price
from billing.postgres.usage_buckets import CostSum, TokenSum
from gateway.http.openapi_answers import Instant
from gateway.http.organization_query import BucketQuery, starts

COLUMNS = {
    "project_id": "tenant_id", "api_key_id": "api_key_id", "model": "model", "batch": "class",
}  # fmt: skip
"""Groups by the column that tells them apart; of the others all requests have the same."""
UNLABELED: Literal["unlabeled"] = "unlabeled"
Number = Annotated[Any, msgspec.Meta(extra_json_schema={"type": ["number", "null"]})]


class UsageResult(msgspec.Struct, kw_only=True):
    """Usage of one group in one bucket. What was not grouped by is null; `user_id` and
    `service_tier` are always, since requests have neither."""

    object: Literal["organization.usage.completions.result"] = (
        "organization.usage.completions.result"
    )
    input_tokens: int
    input_cached_tokens: int
    input_uncached_tokens: int
    output_tokens: int
    num_model_requests: int
    project_id: str | None = None
    user_id: str | None = None
    api_key_id: str | None = None
    model: str | None = None
    batch: bool | None = None
    service_tier: str | None = None
    api_source: Literal["unlabeled"] | None = None


class Amount(msgspec.Struct, kw_only=True):
    """An exact number of units of the currency, all its decimals; null where it is not known. The
    currency's code is in small letters, null where that is not known."""

    value: Number
    currency: str | None


class CostResult(msgspec.Struct, kw_only=True):
    """What one group in one bucket cost, one result a currency. `unpriced_requests` are to be paid
    for and have no price yet: they are in no amount."""

    object: Literal["organization.costs.result"] = "organization.costs.result"
    amount: Amount
    line_item: str | None = None
    quantity: int | None = None
    quantity_unit: str | None = None
    project_id: str | None = None
    user_id: str | None = None
    api_key_id: str | None = None
    api_source: Literal["unlabeled"] | None = None
    unpriced_requests: int


class UsageBucket(msgspec.Struct, kw_only=True):
    """Unix seconds, the end not included."""

    object: Literal["bucket"] = "bucket"
    start_time: int
    end_time: int
    results: list[UsageResult]


class CostBucket(msgspec.Struct, kw_only=True):
    """Unix seconds, the end not included."""

    object: Literal["bucket"] = "bucket"
    start_time: int
    end_time: int
    results: list[CostResult]


class _Page(msgspec.Struct, kw_only=True):
    object: Literal["page"] = "page"
    has_more: bool
    next_page: str | None
    complete: bool
    complete_through: Instant | None
    provisional_requests: int


class UsagePage(_Page, kw_only=True):
    """`GET /v1/organization/usage/completions`."""

    data: list[UsageBucket]


class CostPage(_Page, kw_only=True):
    """`GET /v1/organization/costs`."""

    data: list[CostBucket]
    unpriced_requests: int
    """Of this page."""


def usage_buckets(query: BucketQuery, sums: Sequence[TokenSum]) -> list[UsageBucket]:
    """Every bucket of a page, with what was used in it."""
    by_start: dict[int, list[UsageResult]] = {}
    for each in sums:
        cached = min(each.cached_prompt_tokens, each.prompt_tokens)
        result = UsageResult(
            input_tokens=each.prompt_tokens,
            input_cached_tokens=each.cached_prompt_tokens,
            input_uncached_tokens=each.prompt_tokens - cached,
            output_tokens=each.output_tokens,
            num_model_requests=each.requests,
            **_group(query, each.group),
        )
        by_start.setdefault(each.start_s, []).append(result)
    return [
        UsageBucket(
            start_time=bucket.start_s, end_time=bucket.end_s, results=by_start.get(start_s, [])
        )
        for start_s, bucket in starts(query.buckets, query.width_s)
    ]


@dataclass
class _Cost:
    """What is added up for one result."""

    pico: int | None = None
    quantity: int | None = None
    unit: str | None = None
    unpriced_requests: int = 0

    def add(self, line: CostLine) -> None:
        if line.pico is not None:
            self.pico = (self.pico or 0) + line.pico
        if line.quantity is not None:
            self.quantity, self.unit = (self.quantity or 0) + line.quantity, line.unit
        self.unpriced_requests += line.unpriced_requests


def cost_buckets(
    query: BucketQuery, sums: Sequence[CostSum], prices: Mapping[int, Price]
) -> list[CostBucket]:
    """Every bucket of a page, with what it cost: whole, or by line items, and of those that are
    asked for."""
    by_line = "line_item" in query.group_by
    wanted = query.lists.get("line_items")
    found: dict[tuple[int, tuple[str, ...], str, str], _Cost] = {}
    for each in sums:
        lines = _lines(each, prices) if by_line or wanted is not None else _whole(each)
        for line in lines:
            if wanted is None or line.line_item in wanted:
                item = line.line_item if by_line else ""
                key = (each.start_s, each.group, item, each.currency or "")
                found.setdefault(key, _Cost()).add(line)
    by_start: dict[int, list[CostResult]] = {}
    for (start_s, group, item, currency), cost in sorted(found.items(), key=lambda each: each[0]):
        result = CostResult(
            amount=Amount(value=_number(cost.pico, currency), currency=currency.lower() or None),
            line_item=item or None,
            quantity=cost.quantity if by_line else None,
            quantity_unit=cost.unit if by_line else None,
            unpriced_requests=cost.unpriced_requests,
            **_group(query, group),
        )
        by_start.setdefault(start_s, []).append(result)
    return [
        CostBucket(
            start_time=bucket.start_s, end_time=bucket.end_s, results=by_start.get(start_s, [])
        )
        for start_s, bucket in starts(query.buckets, query.width_s)
    ]


def columns_of(query: BucketQuery) -> list[str]:
    """What sums have to be grouped by."""
    return [COLUMNS[name] for name in query.group_by if name in COLUMNS]


def _lines(each: CostSum, prices: Mapping[int, Price]) -> list[CostLine]:
    price = None
    if each.billable and each.price_id is not None:
        price = prices.get(each.price_id)
    return cost_lines(
        Rated(
            each.model,
            price,
            each.requests,
            each.prompt_tokens,
            each.cached_prompt_tokens,
            each.output_tokens,
            each.reasoning_tokens,
            each.cost_pico,
            each.unpriced_requests,
        )
    )


def _whole(each: CostSum) -> list[CostLine]:
    """In one; nothing where nobody is to pay anything."""
    if not each.billable and not each.cost_pico:
        return []
    known = each.requests > each.unpriced_requests or each.cost_pico
    pico = each.cost_pico if known else None
    return [CostLine("", None, None, pico, each.unpriced_requests)]


def _group(query: BucketQuery, group: Sequence[str]) -> dict[str, Any]:
    """A group's values by OpenAI's names."""
    names = [name for name in query.group_by if name in COLUMNS]
    found: dict[str, Any] = dict(zip(names, group, strict=True))
    if "batch" in found:
        found["batch"] = found["batch"] == "batch"
    if "api_source" in query.group_by:
        found["api_source"] = UNLABELED
    return found


def _number(pico: int | None, currency: str) -> msgspec.Raw | None:
    """The amount as a JSON number of plain digits."""
    return None if pico is None else msgspec.Raw(show_amount(pico, currency).encode())
