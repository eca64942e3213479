"""Logging in and out."""

import contextlib

from litestar import get, post

from gateway.console.access import open_page, personal_page
from gateway.console.forms import Form
from gateway.console.guard import LOGIN_PATH, own_path
from gateway.console.visit import Answer, Here, Visit
from gateway.errors import Overloaded, StoreUnavailable, Unauthorized
from gateway.http.form_fields import OPEN_BYTES_MAX
from gateway.http.session_cookie import no_session_cookie, session_cookie

REFUSED = (
    "That e-mail address and password do not belong together, or the account is locked: after 10 "
    "wrong passwords nobody can log in to it for 15 minutes."
)
"""One sentence for all cases: which of them it is would tell a stranger who has an account."""


@get("/login", opt=open_page())
async def show_login(visit: Here) -> Answer:
    """The log-in page; whoever is logged in already is led on."""
    query = visit.query()
    if visit.session_secret:
        with contextlib.suppress(StoreUnavailable):
            if await visit.parts.administration.caller_by_session(visit.session_secret):
                return visit.go(own_path(query.text("next")) or "/console")
    notice = "Your session has ended. Log in again to go on." if query.flag("ended") else None
    if query.flag("out"):
        notice = "You are logged out."
    if query.flag("changed"):
        notice = "Your password is changed, and you are logged out everywhere. Log in with it."
    return _login_page(visit, Form.filled({"email": "", "next": query.text("next")}), notice=notice)


@post("/login", opt=open_page(), request_max_body_size=OPEN_BYTES_MAX)
async def log_in(visit: Here) -> Answer:
    """Begin a session and lead to the page that was asked for."""
    form = await visit.form()
    email, password = form.text("email"), form.secret("password")
    form.values.pop("password", None)
    client = visit.request.client
    try:
        session = await visit.parts.administration.log_in(
            email, password, address=None if client is None else client.host
        )
    except Unauthorized:
        form.errors[""] = REFUSED
        return _login_page(visit, form, status=401)
    except Overloaded:
        form.errors[""] = "Too many people are logging in right now. Try again in a moment."
        return _login_page(visit, form, status=503)
    cookie = session_cookie(session, now_ms=visit.now_ms, secure=visit.secure)
    return visit.go(own_path(form.text("next")) or "/console", also=cookie)


@post("/logout", opt=personal_page())
async def log_out(visit: Here) -> Answer:
    """End this session."""
    await visit.parts.administration.log_out(visit.session_secret)
    return visit.go(f"{LOGIN_PATH}?out=1", also=no_session_cookie(secure=visit.secure))


def _login_page(
    visit: Visit, form: Form, *, notice: str | None = None, status: int = 200
) -> Answer:
    return visit.show("login.html", status=status, form=form, notice=notice)


PAGES = (show_login, log_in, log_out)
