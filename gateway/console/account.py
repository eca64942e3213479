"""Whoever is logged in: their password, sessions and tokens."""

from litestar import get

from gateway.console.access import personal_page
from gateway.console.visit import Answer, Here


@get("/account", opt=personal_page())
async def show_account(visit: Here) -> Answer:
    """The page of one's own account."""
    return visit.show("account/page.html")


PAGES = (show_account,)
