"""What a million tokens cost to make."""

from litestar import get

from gateway.console.access import page
from gateway.console.visit import Answer, Here
from gateway.domain.permissions import Permission


@get("/money/unit-cost", opt=page(Permission.MONEY_READ))
async def show_unit_cost(visit: Here) -> Answer:
    """The page."""
    return visit.show("unit_cost/page.html")


PAGES = (show_unit_cost,)
