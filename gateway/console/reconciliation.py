"""Whether what was metered, priced and billed agrees."""

from litestar import get

from gateway.console.access import page
from gateway.console.visit import Answer, Here
from gateway.domain.permissions import Permission


@get("/money/reconciliation", opt=page(Permission.MONEY_READ))
async def show_reconciliation(visit: Here) -> Answer:
    """The page."""
    return visit.show("reconciliation/page.html")


PAGES = (show_reconciliation,)
