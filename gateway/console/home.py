"""`/console` itself: the way to the first page that somebody may see, and the theme."""

from pathlib import Path

from litestar import get, post
from litestar.params import FromPath

from gateway.console.access import open_page, personal_page
from gateway.console.cookies import THEMES, theme_cookie
from gateway.console.guard import LOGIN_PATH, own_path
from gateway.console.visit import Answer, Here
from gateway.errors import NotFound
from gateway.http.form_fields import OPEN_BYTES_MAX


@get("/", opt=personal_page())
async def go_home(visit: Here) -> Answer:
    """To the first place of the navigation."""
    places = visit.places
    return visit.go(places[0].path if places else "/console/account")


@post("/theme", opt=open_page(), request_max_body_size=OPEN_BYTES_MAX)
async def set_theme(visit: Here) -> Answer:
    """Keep a theme in this browser, and back to the page it was chosen on."""
    form = await visit.form()
    theme = form.text("theme")
    back = form.text("back")
    to = back if back == LOGIN_PATH else own_path(back) or "/console"
    return visit.go(to, also=theme_cookie(theme if theme in THEMES else "system"))


@get("/{rest:path}", opt=personal_page())
async def find_nothing(rest: FromPath[Path]) -> Answer:
    """Where there is no page: who is logged in finds their way on from there."""
    raise NotFound("")


PAGES = (go_home, set_theme, find_nothing)
