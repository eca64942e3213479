"""Tenants, their limits and their keys on the admin API."""

from typing import Any

from litestar import Controller, Response, get, patch, post, put
from litestar.params import FromPath, FromQuery

from gateway.administration.tenant_views import own_tenant
from gateway.administration.views import (
    View,
    key_view,
    page_view,
    tenant_limits,
    tenant_view,
)
from gateway.domain.permissions import Permission
from gateway.domain.tenant import TenantLimits
from gateway.http.access import Own, needs
from gateway.http.admin_bodies import (
    KeyBody,
    TenantBody,
    TenantChanges,
    instant_ms,
    read_body,
    unless_absent,
)
from gateway.http.admin_requests import AdminRequest, Verbs, actor_of
from gateway.http.confirmed import confirmation_headers
from gateway.http.guards import may, tenant_of
from gateway.http.openapi_answers import KeyAnswer, NewKeyAnswer, Page, TenantAnswer
from gateway.http.openapi_operations import described


class TenantController(Controller):
    """`/admin/v1/tenants`."""

    path = "/tenants"
    tags = ("tenants",)

    @get(opt=described(Page[TenantAnswer]) | needs(Permission.TENANTS_READ))
    async def list_tenants(
        self,
        administration: Verbs,
        limit: FromQuery[int] = 100,
        cursor: FromQuery[str | None] = None,
    ) -> View:
        """Tenants by id."""
        page = await administration.list_tenants(limit, cursor)
        return page_view(page, [tenant_view(tenant) for tenant in page.items])

    @post(opt=described(TenantAnswer, body=TenantBody) | needs(Permission.TENANTS_WRITE))
    async def create_tenant(self, request: AdminRequest, administration: Verbs) -> View:
        """Create a tenant."""
        body = await read_body(request, TenantBody)
        tenant = await administration.create_tenant(
            actor_of(request),
            body.id,
            body.name,
            body.limits,
            currency=body.currency,
            time_zone=body.time_zone,
            billing_profile=body.billing_profile,
        )
        return tenant_view(tenant)

    @get(
        "/{tenant_id:str}",
        opt=described(TenantAnswer) | needs(Permission.TENANTS_READ, own=Own.TENANT),
    )
    async def get_tenant(
        self, request: AdminRequest, administration: Verbs, tenant_id: FromPath[str]
    ) -> View:
        """One tenant; its own people see whom it is billed as where they may read invoices."""
        view = tenant_view(await administration.get_tenant(tenant_id))
        if tenant_of(request) is None:
            return view
        return own_tenant(view, with_billing=may(request, Permission.INVOICES_READ))

    @patch(
        "/{tenant_id:str}",
        opt=described(TenantAnswer, body=TenantChanges) | needs(Permission.TENANTS_WRITE),
    )
    async def update_tenant(
        self, request: AdminRequest, administration: Verbs, tenant_id: FromPath[str]
    ) -> Response[View]:
        """Change what the body names: name, suspended or not, currency, time zone, billing
        profile. With `suspended` `x-weir-unconfirmed` names the gateways that have not confirmed
        it; where they have, what is open for a suspended tenant ends."""
        body = await read_body(request, TenantChanges)
        tenant = await administration.update_tenant(
            actor_of(request),
            tenant_id,
            name=unless_absent(body.name),
            suspended=unless_absent(body.suspended),
            currency=unless_absent(body.currency),
            time_zone=unless_absent(body.time_zone),
            billing_profile=unless_absent(body.billing_profile),
        )
        view, suspended = tenant_view(tenant), unless_absent(body.suspended)
        if suspended is None:
            return Response(view)
        found = await administration.confirm_tenant(tenant_id)
        return Response(view, headers=confirmation_headers(found))

    @get(
        "/{tenant_id:str}/limits",
        opt=described(TenantLimits) | needs(Permission.TENANTS_READ, own=Own.TENANT),
    )
    async def get_limits(self, administration: Verbs, tenant_id: FromPath[str]) -> TenantLimits:
        """A tenant's limits, in the form that PUT takes."""
        return await administration.get_tenant_limits(tenant_id)

    @put(
        "/{tenant_id:str}/limits",
        opt=described(TenantLimits, body=TenantLimits) | needs(Permission.TENANTS_WRITE),
    )
    async def put_limits(
        self, request: AdminRequest, administration: Verbs, tenant_id: FromPath[str]
    ) -> Response[TenantLimits]:
        """Replace all of a tenant's limits; fields that are absent take their defaults.
        `x-weir-unconfirmed` names the gateways that have not confirmed them."""
        fields = await read_body(request, dict[str, Any])
        tenant = await administration.put_tenant_limits(actor_of(request), tenant_id, fields)
        found = await administration.confirm_tenant(tenant_id)
        return Response(tenant_limits(tenant.limits), headers=confirmation_headers(found))

    @get(
        "/{tenant_id:str}/keys",
        opt=described(Page[KeyAnswer]) | needs(Permission.KEYS_READ, own=Own.TENANT),
    )
    async def list_keys(
        self,
        administration: Verbs,
        tenant_id: FromPath[str],
        limit: FromQuery[int] = 100,
        cursor: FromQuery[str | None] = None,
    ) -> View:
        """A tenant's keys by id, without secrets."""
        page = await administration.list_keys(tenant_id, limit, cursor)
        return page_view(page, [key_view(key) for key in page.items])

    @post(
        "/{tenant_id:str}/keys",
        opt=described(NewKeyAnswer, body=KeyBody) | needs(Permission.KEYS_WRITE, own=Own.TENANT),
    )
    async def create_key(
        self, request: AdminRequest, administration: Verbs, tenant_id: FromPath[str]
    ) -> Response[View]:
        """Create a key. Its secret is in this answer and nowhere else. `x-weir-unconfirmed` names
        the gateways that have not confirmed that they take it."""
        body = await read_body(request, KeyBody)
        key, secret = await administration.create_key(
            actor_of(request),
            tenant_id,
            body.name,
            body.request_class,
            expires_at_ms=instant_ms(body.expires_at, field="expires_at"),
            models=body.models,
            ip_allow=body.ip_allow,
        )
        found = await administration.confirm_key(key.id)
        return Response(key_view(key, secret=secret), headers=confirmation_headers(found))
