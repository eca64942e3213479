"""`GET /v1/usage`, a tenant's own, and `GET /billing/v1/usage`, all of it: in sums, and whether
anything may be missing."""

from collections.abc import Callable
from typing import Any

from litestar import Request, get
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromQuery

from billing.postgres.usage_records import GroupBy
from gateway.adapters.usage_reports import UsageReports
from gateway.administration.checks import check_tenant_id
from gateway.administration.views import View
from gateway.domain.permissions import Permission
from gateway.errors import InvalidRequest, Unprocessable
from gateway.http.access import Own, needs
from gateway.http.admin_requests import AdminRequest
from gateway.http.guards import tenant_of
from gateway.http.openapi_operations import described
from gateway.http.openapi_usage import OwnUsageAnswer, UsageReportAnswer
from gateway.http.usage_query import read_query
from gateway.serving.authenticate import Caller

OWN_GROUPS = (GroupBy.DAY, GroupBy.MODEL, GroupBy.KEY, GroupBy.CLASS)
GROUPS = (
    GroupBy.TENANT, GroupBy.KEY, GroupBy.MODEL, GroupBy.CLASS, GroupBy.PROVIDER, GroupBy.DAY,
)  # fmt: skip


def own_usage_handler(
    caller_of: Callable[[Request[Any, Any, Any]], Caller],
    reports: UsageReports,
    after_request: Any,
) -> HTTPRouteHandler:
    """`/v1/usage`, below OpenAI's error shape."""

    @get("/v1/usage", after_request=after_request, opt=described(OwnUsageAnswer))
    async def get_usage(
        request: Request[Any, Any, Any],
        *,
        since: FromQuery[str | None] = None,
        until: FromQuery[str | None] = None,
        group_by: FromQuery[str] = OWN_GROUPS[0].value,
        time_zone: FromQuery[str] = "UTC",
    ) -> dict[str, object]:
        """What the key's tenant has used: requests that have ended, by when they arrived, of the
        last 30 days or from `since` on and before `until`; by day, model, key or class. `complete`
        is false where records may be missing, `complete_through` the instant by which nothing that
        had ended is; `null` where that is not known. Of one tenant one question is answered at a
        time, and a few wait."""
        caller = caller_of(request)
        query = read_query(
            request.query_params.multi_items(), groups=OWN_GROUPS, refusal=InvalidRequest
        )
        tenant = caller.tenant.id
        answered = await query.answer(reports, tenant_id=tenant, asked_by=tenant)
        return {
            "object": "usage", **answered.head, "data": answered.sums, **answered.standing,
        }  # fmt: skip

    return get_usage


def usage_handler(reports: UsageReports) -> HTTPRouteHandler:
    """`/billing/v1/usage`, without the path above it, and guarded by whoever mounts it. A tenant's
    roles have the groups and the turns of `/v1/usage`."""

    @get(
        "/usage",
        opt=described(UsageReportAnswer) | needs(Permission.USAGE_READ, own=Own.LIST),
        tags=["usage"],
    )
    async def sum_usage(
        request: AdminRequest,
        *,
        tenant_id: FromQuery[str | None] = None,
        since: FromQuery[str | None] = None,
        until: FromQuery[str | None] = None,
        group_by: FromQuery[str] = GROUPS[0].value,
        time_zone: FromQuery[str] = "UTC",
    ) -> View:
        """Sum usage by tenant, key, model, class, provider or day, of all tenants or one: requests
        that have ended, by when they arrived, of the last 30 days or from `since` on and before
        `until`. `complete` is false where records may be missing."""
        held_to = tenant_of(request)
        query = read_query(
            request.query_params.multi_items(),
            groups=GROUPS if held_to is None else OWN_GROUPS,
            refusal=Unprocessable,
            also=("tenant_id",),
        )
        if tenant_id is not None:
            check_tenant_id(tenant_id, field="tenant_id")
        answered = await query.answer(reports, tenant_id=held_to or tenant_id, asked_by=held_to)
        return {
            **answered.head, "items": answered.sums, "next_cursor": None, **answered.standing,
        }  # fmt: skip

    return sum_usage
