"""The price book."""

from litestar import get

from gateway.console.access import page
from gateway.console.visit import Answer, Here
from gateway.domain.permissions import Permission


@get("/money/prices", opt=page(Permission.MONEY_READ))
async def show_prices(visit: Here) -> Answer:
    """The page."""
    return visit.show("prices/page.html")


PAGES = (show_prices,)
