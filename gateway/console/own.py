"""The pages of a tenant's own people: their limits and use, keys, usage and invoices."""

from litestar import get

from gateway.console.access import own_page
from gateway.console.visit import Answer, Here
from gateway.domain.permissions import Permission


@get("/own", opt=own_page(Permission.TENANTS_READ))
async def show_overview(visit: Here) -> Answer:
    """How the tenant stands now."""
    tenant = await visit.parts.administration.get_tenant(visit.tenant_id)
    return visit.show("own/overview.html", tenant=tenant)


@get("/own/keys", opt=own_page(Permission.KEYS_READ))
async def list_own_keys(visit: Here) -> Answer:
    """The tenant's API keys."""
    return visit.show("own/keys.html")


@get("/own/usage", opt=own_page(Permission.USAGE_READ))
async def show_own_usage(visit: Here) -> Answer:
    """What the tenant used."""
    return visit.show("own/usage.html")


@get("/own/invoices", opt=own_page(Permission.INVOICES_READ))
async def list_own_invoices(visit: Here) -> Answer:
    """The tenant's invoices."""
    return visit.show("own/invoices.html")


PAGES = (show_overview, list_own_keys, show_own_usage, list_own_invoices)
