"""Limits of many tenants at once, on the admin API."""

from typing import Any

import msgspec
from litestar import Controller, Response, put

from gateway.administration.bulk_limits import bulk_view
from gateway.administration.views import View
from gateway.domain.permissions import Permission
from gateway.http.access import needs
from gateway.http.admin_bodies import read_body
from gateway.http.admin_requests import AdminRequest, Verbs, actor_of
from gateway.http.confirmed import confirmation_headers
from gateway.http.openapi_audit import BulkAnswer
from gateway.http.openapi_operations import described


class LimitsOf(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The limits of one of the tenants, whole: fields that are absent take their defaults. With
    `if_version`, the tenant's `limits_version`, only where nobody has changed them since."""

    tenant_id: str
    limits: dict[str, Any]
    if_version: int | None = None


class BulkBody(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Up to 1000 tenants, each named once."""

    changes: list[LimitsOf]


class BulkController(Controller):
    """`/admin/v1/limits`."""

    path = "/limits"
    tags = ("tenants",)

    @put(opt=described(BulkAnswer, body=BulkBody) | needs(Permission.TENANTS_WRITE))
    async def put_many_limits(self, request: AdminRequest, administration: Verbs) -> Response[View]:
        """Replace the limits of many tenants, or where any is refused, of none: `param` names the
        item; 409 `limits_changed` names the tenants whose limits are of another version than
        `if_version`. Each has its own entry of the audit log, all with one `change_id`.
        `x-weir-unconfirmed` names the gateways that have not confirmed them."""
        body = await read_body(request, BulkBody)
        wanted = [(each.tenant_id, each.limits) for each in body.changes]
        versions = {
            each.tenant_id: each.if_version for each in body.changes if each.if_version is not None
        }
        done = await administration.put_many_limits(actor_of(request), wanted, if_versions=versions)
        found = await administration.confirm_tenant(done.latest)
        return Response(bulk_view(done), headers=confirmation_headers(found))
