"""Limits of a tenant, and what a change of them would do."""

from litestar import get, post
from litestar.params import FromPath

from gateway.console.access import page
from gateway.console.limit_pages import (
    LimitsOf,
    save_limits_of,
    show_effect_of,
    show_limits_of,
)
from gateway.console.visit import Answer, Here, Visit
from gateway.domain.permissions import Permission


@get("/tenants/{tenant_id:str}/limits", opt=page(Permission.TENANTS_READ))
async def show_limits(visit: Here, tenant_id: FromPath[str]) -> Answer:
    """The limits of one tenant."""
    return await show_limits_of(visit, await _limits_of(visit, tenant_id))


@post("/tenants/{tenant_id:str}/limits/effect", opt=page(Permission.TENANTS_WRITE))
async def show_limits_effect(visit: Here, tenant_id: FromPath[str]) -> Answer:
    """What they would do; nothing is saved."""
    return await show_effect_of(visit, await _limits_of(visit, tenant_id))


@post("/tenants/{tenant_id:str}/limits", opt=page(Permission.TENANTS_WRITE))
async def save_limits(visit: Here, tenant_id: FromPath[str]) -> Answer:
    """Save them."""
    return await save_limits_of(visit, await _limits_of(visit, tenant_id))


async def _limits_of(visit: Visit, tenant_id: str) -> LimitsOf:
    tenant = await visit.parts.administration.get_tenant(tenant_id)
    page_of_tenant = f"/console/tenants/{tenant.id}"
    return LimitsOf(
        tenant=tenant,
        path=f"{page_of_tenant}/limits",
        back=page_of_tenant,
        crumbs=(("Tenants", "/console/tenants"), (tenant.name, page_of_tenant)),
        may_write=visit.may(Permission.TENANTS_WRITE),
    )


PAGES = (show_limits, show_limits_effect, save_limits)
