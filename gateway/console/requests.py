"""One request's whole life, from its arrival to its line on an invoice."""

from litestar import get
from litestar.params import FromPath

from gateway.console.access import page
from gateway.console.visit import Answer, Here
from gateway.domain.permissions import Permission


@get("/requests/{request_id:str}", opt=page(Permission.USAGE_READ))
async def show_request(visit: Here, request_id: FromPath[str]) -> Answer:
    """The page of one request."""
    return visit.show("requests/page.html", request_id=request_id)


PAGES = (show_request,)
