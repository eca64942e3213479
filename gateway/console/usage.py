"""What was used, by day, tenant, key and model."""

from litestar import get

from gateway.console.access import page
from gateway.console.visit import Answer, Here
from gateway.domain.permissions import Permission


@get("/usage", opt=page(Permission.USAGE_READ))
async def show_usage(visit: Here) -> Answer:
    """The page."""
    return visit.show("usage/page.html")


PAGES = (show_usage,)
