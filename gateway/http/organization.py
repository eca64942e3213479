"""`GET /v1/organization/usage/completions` and `/v1/organization/costs`, as OpenAI has them, for
tools that read them there: of the key's own tenant, or of all for staff."""

import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Annotated, Any

import msgspec
from litestar import Request, Response, get
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromQuery
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from billing.domain.price_book import Price
from billing.postgres.price_tables import price
from billing.postgres.prices import PRICE_COLUMNS, price_from
from billing.postgres.usage_buckets import CostSum, TokenSum, sum_costs, sum_tokens
from billing.postgres.usage_sources import Chosen
from gateway.adapters.completeness import Found
from gateway.adapters.usage_reports import UsageReports, standing_view
from gateway.domain.permissions import Permission
from gateway.http.openapi_operations import described
from gateway.http.organization_answers import (
    CostPage,
    UsagePage,
    columns_of,
    cost_buckets,
    usage_buckets,
)
from gateway.http.organization_query import COMPLETIONS, COSTS, BucketQuery, Endpoint, read_buckets
from gateway.http.organization_readers import Reader

Whole = Annotated[str, msgspec.Meta(extra_json_schema={"type": "integer"})]
Switch = Annotated[str, msgspec.Meta(extra_json_schema={"type": "boolean"})]
ReaderOf = Callable[[Request[Any, Any, Any], Permission], Awaitable[Reader]]
"""Who reads, where the permission is the one that users need for it."""


class OrganizationUsage:
    """Reads what is asked for in the turns that usage is read in."""

    def __init__(self, reports: UsageReports) -> None:
        self._reports = reports

    async def usage(self, request: Request[Any, Any, Any], reader: Reader) -> UsagePage:
        """A page of buckets with their tokens."""
        query, chosen = _asked(request, reader, COMPLETIONS)

        async def work(db: AsyncConnection) -> list[TokenSum]:
            return await sum_tokens(db, chosen, width=_width(query), by=columns_of(query))

        sums, found = await self._reports.read(work, asked_by=reader.tenant_id)
        provisional = sum(each.provisional_requests for each in sums)
        return UsagePage(data=usage_buckets(query, sums), **_rest(query, found, provisional))

    async def costs(self, request: Request[Any, Any, Any], reader: Reader) -> CostPage:
        """A page of buckets with what they cost."""
        query, chosen = _asked(request, reader, COSTS)

        async def work(db: AsyncConnection) -> tuple[list[CostSum], dict[int, Price]]:
            sums = await sum_costs(db, chosen, width=_width(query), by=columns_of(query))
            return sums, await _prices_of(db, sums)

        (sums, prices), found = await self._reports.read(work, asked_by=reader.tenant_id)
        buckets = cost_buckets(query, sums, prices)
        provisional = sum(each.provisional_requests for each in sums)
        unpriced = sum(each.unpriced_requests for bucket in buckets for each in bucket.results)
        return CostPage(
            data=buckets, unpriced_requests=unpriced, **_rest(query, found, provisional)
        )


def organization_handlers(
    reader_of: ReaderOf, reports: UsageReports, after_request: Any
) -> list[HTTPRouteHandler]:
    """Both, below OpenAI's error shape."""
    read = OrganizationUsage(reports)

    @get(
        "/v1/organization/usage/completions", after_request=after_request, opt=described(UsagePage)
    )
    async def get_organization_usage(
        request: Request[Any, Any, Any],
        *,
        start_time: FromQuery[Whole | None] = None,
        end_time: FromQuery[Whole | None] = None,
        bucket_width: FromQuery[str] = "1d",
        group_by: FromQuery[list[str] | None] = None,
        project_ids: FromQuery[list[str] | None] = None,
        api_key_ids: FromQuery[list[str] | None] = None,
        models: FromQuery[list[str] | None] = None,
        batch: FromQuery[Switch | None] = None,
        limit: FromQuery[Whole | None] = None,
        page: FromQuery[str | None] = None,
    ) -> Response[bytes]:
        """Tokens and requests in buckets of a minute, an hour or a day, as OpenAI's usage endpoint
        has them: of the key's tenant, or with a user's token of all that the user sees, where a
        tenant is a project. `start_time`, in Unix seconds, is needed. `complete` is false where
        records may be missing."""
        reader = await reader_of(request, Permission.USAGE_READ)
        return _answer(await read.usage(request, reader))

    @get("/v1/organization/costs", after_request=after_request, opt=described(CostPage))
    async def get_organization_costs(
        request: Request[Any, Any, Any],
        *,
        start_time: FromQuery[Whole | None] = None,
        end_time: FromQuery[Whole | None] = None,
        bucket_width: FromQuery[str] = "1d",
        group_by: FromQuery[list[str] | None] = None,
        project_ids: FromQuery[list[str] | None] = None,
        api_key_ids: FromQuery[list[str] | None] = None,
        line_items: FromQuery[list[str] | None] = None,
        limit: FromQuery[Whole | None] = None,
        page: FromQuery[str | None] = None,
    ) -> Response[bytes]:
        """What it cost in buckets of a day, as OpenAI's costs endpoint has it, one result a
        currency. `start_time`, in Unix seconds, is needed. `unpriced_requests` have no price yet
        and are in no amount."""
        reader = await reader_of(request, Permission.INVOICES_READ)
        return _answer(await read.costs(request, reader))

    return [get_organization_usage, get_organization_costs]


def _asked(
    request: Request[Any, Any, Any], reader: Reader, endpoint: Endpoint
) -> tuple[BucketQuery, Chosen]:
    query = read_buckets(request.query_params.multi_items(), endpoint, now_s=int(time.time()))
    return query, query.chosen(reader.tenants(query.lists.get("project_ids")))


def _width(query: BucketQuery) -> timedelta:
    return timedelta(seconds=query.width_s)


def _rest(query: BucketQuery, found: Found, provisional_requests: int) -> dict[str, Any]:
    following = query.next_page
    return {
        "has_more": following is not None,
        "next_page": following,
        **standing_view(
            found,
            until_ms=query.buckets[-1].end_s * 1000,
            provisional_requests=provisional_requests,
        ),
    }


async def _prices_of(db: AsyncConnection, sums: Sequence[CostSum]) -> dict[int, Price]:
    ids = {each.price_id for each in sums if each.price_id is not None}
    if not ids:
        return {}
    rows = await db.execute(select(*PRICE_COLUMNS).where(price.c.id.in_(ids)))
    return {each.id: each for each in map(price_from, rows)}


def _answer(page: UsagePage | CostPage) -> Response[bytes]:
    return Response(msgspec.json.encode(page), media_type="application/json")
