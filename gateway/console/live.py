"""What runs now: tenants, queues and workers, as they change."""

from litestar import get

from gateway.console.access import page
from gateway.console.visit import Answer, Here
from gateway.domain.permissions import Permission


@get("/live", opt=page(Permission.LIVE_READ))
async def show_live(visit: Here) -> Answer:
    """The page."""
    return visit.show("live/page.html")


PAGES = (show_live,)
