"""Tenants: who they are and how they stand."""

from litestar import get

from gateway.console.access import page
from gateway.console.visit import Answer, Here
from gateway.domain.permissions import Permission


@get("/tenants", opt=page(Permission.TENANTS_READ))
async def list_tenants(visit: Here) -> Answer:
    """The page."""
    return visit.show("tenants/list.html")


PAGES = (list_tenants,)
