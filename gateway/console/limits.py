"""Limits of a tenant or a key, and what a change of them would do."""

from litestar import get
from litestar.params import FromPath

from gateway.console.access import page
from gateway.console.visit import Answer, Here
from gateway.domain.permissions import Permission


@get("/tenants/{tenant_id:str}/limits", opt=page(Permission.TENANTS_READ))
async def show_limits(visit: Here, tenant_id: FromPath[str]) -> Answer:
    """The limits of one tenant."""
    tenant = await visit.parts.administration.get_tenant(tenant_id)
    return visit.show("limits/page.html", tenant=tenant)


PAGES = (show_limits,)
