"""Who changed what, and when."""

from litestar import get

from gateway.console.access import page
from gateway.console.visit import Answer, Here
from gateway.domain.permissions import Permission


@get("/audit", opt=page(Permission.AUDIT_READ))
async def show_audit(visit: Here) -> Answer:
    """The page."""
    return visit.show("audit/page.html")


PAGES = (show_audit,)
