"""Who is let in: a browser's session, and forms that come from this server's own pages."""

from typing import Any
from urllib.parse import SplitResult, quote, urlsplit

from litestar import Request
from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler
from litestar.types import Guard

from gateway.administration import Administration
from gateway.console.access import Audience, page_access
from gateway.errors import Forbidden, Unauthorized
from gateway.http.guards import check_csrf, check_same_site
from gateway.http.session_cookie import SESSION_COOKIE

LOGIN_PATH = "/console/login"
_SAFE = frozenset({"GET", "HEAD"})
_NEXT_CHARACTERS_MAX = 500


def console_guard(administration: Administration) -> Guard:
    """A guard that lets in whom a page names in its `opt`; who it is, is then `request.auth`.

    Raises Unauthorized where nobody is logged in, and Forbidden where who is may not, or where a
    form was not sent from a page that this server gave to that session.
    """

    async def guard(
        connection: ASGIConnection[Any, Any, Any, Any], route_handler: BaseRouteHandler
    ) -> None:
        method = connection.scope.get("method")
        if method == "OPTIONS":
            return
        access = page_access(route_handler.opt, connection.scope["path"])
        is_form = method not in _SAFE
        if is_form:
            check_same_site(connection)
        if access.audience is Audience.ANYONE:
            return
        secret = connection.cookies.get(SESSION_COOKIE, "")
        caller = await administration.caller_by_session(secret) if secret else None
        if caller is None:
            raise Unauthorized("you are not logged in, or your session has ended")
        connection.scope["user"], connection.scope["auth"] = caller.user, caller
        if is_form:
            await check_csrf(connection)
        if not access.allows(caller):
            raise Forbidden(f"the role {caller.user.role} may not do this")

    return guard


def own_path(text: str | None) -> str | None:
    """A path of the console that may be led to after a log-in, None for whatever is anything else:
    another site's address, or a page that ends the session."""
    if not text or len(text) > _NEXT_CHARACTERS_MAX or "\\" in text:
        return None
    if not (text.isascii() and text.isprintable()):
        return None
    parts = _parts_of(text)
    if parts is None or parts.scheme or parts.netloc or text.startswith("//"):
        return None
    if parts.path != "/console" and not parts.path.startswith("/console/"):
        return None
    if "/." in parts.path or parts.path.startswith((LOGIN_PATH, "/console/logout")):
        return None
    return text


def login_path(request: Request[Any, Any, Any], *, ended: bool) -> str:
    """The log-in page that leads back to where this request came from."""
    is_page = request.scope.get("method") in _SAFE and "hx-request" not in request.headers
    if is_page:
        address = f"{request.url.path}?{request.url.query}"
    else:
        address = request.headers.get("hx-current-url") or request.headers.get("referer") or ""
    said = "ended=1" if ended else ""
    found = own_path(_back_of(address))
    wanted = f"next={quote(found, safe='/')}" if found and found != "/console" else ""
    query = "&".join(filter(None, (said, wanted)))
    return f"{LOGIN_PATH}?{query}" if query else LOGIN_PATH


def _back_of(address: str) -> str | None:
    parts = _parts_of(address)
    if parts is None:
        return None
    return f"{parts.path}?{parts.query}" if parts.query else parts.path


def _parts_of(address: str) -> SplitResult | None:
    """None for what is no address, such as `//[`."""
    try:
        return urlsplit(address)
    except ValueError:
        return None
