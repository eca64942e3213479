"""Users, their roles, sessions and tokens."""

from litestar import get

from gateway.console.access import page
from gateway.console.visit import Answer, Here
from gateway.domain.permissions import Permission


@get("/users", opt=page(Permission.USERS_READ))
async def list_users(visit: Here) -> Answer:
    """The page."""
    return visit.show("users/list.html")


PAGES = (list_users,)
