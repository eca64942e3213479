"""API keys of a tenant: made, shown once, rotated, revoked."""

from litestar import get
from litestar.params import FromPath

from gateway.console.access import page
from gateway.console.visit import Answer, Here
from gateway.domain.permissions import Permission


@get("/tenants/{tenant_id:str}/keys", opt=page(Permission.KEYS_READ))
async def list_keys(visit: Here, tenant_id: FromPath[str]) -> Answer:
    """The keys of one tenant."""
    tenant = await visit.parts.administration.get_tenant(tenant_id)
    return visit.show("keys/list.html", tenant=tenant)


PAGES = (list_keys,)
