"""Who may do what outside `/v1`: a user's bearer token or session, what their role and the token's
scopes allow, and of a tenant's roles what is the tenant's own."""

import hmac
from typing import Any, Protocol
from urllib.parse import urlsplit

from litestar import Request
from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler
from litestar.types import Guard

from gateway.administration.credentials import csrf_of
from gateway.domain.account import TENANT_ROLES, User
from gateway.domain.permissions import PERMISSIONS_OF, Caller, Permission
from gateway.errors import Forbidden, NotFound, Unauthorized
from gateway.http.access import Access, Own, access_of, owner_of
from gateway.http.form_fields import form_fields
from gateway.http.session_cookie import SESSION_COOKIE

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
CSRF_HEADER = "x-csrf-token"
CSRF_FIELD = "csrf"

Connection = ASGIConnection[Any, Any, Any, Any]


class Users(Protocol):
    """Who a token or a session belongs to, and what they may do with it."""

    async def caller_by_token(self, secret: str) -> Caller | None:
        """None where the token is unknown, revoked or expired, or its user disabled."""

    async def caller_by_session(self, secret: str) -> Caller | None:
        """None where the session is unknown, ended or idle for too long, or its user disabled."""


def permission_guard(users: Users) -> Guard:
    """A guard that lets those pass who may do what the route says that it needs. The user is then
    `request.user`, and the Caller `request.auth`.

    Raises Unauthorized where nobody is known to call, Forbidden where they may not do this or where
    another site may have made their browser do it, and NotFound where a tenant's role asks for what
    is another tenant's or does not exist, in the same words for both.
    """

    async def guard(connection: Connection, route_handler: BaseRouteHandler) -> None:
        method = connection.scope.get("method")
        if method == "OPTIONS":
            access = Access()
        else:
            access = access_of(route_handler.opt, connection.scope["path"])
        if access.to_anyone:
            return
        caller = await caller_of(connection, users)
        connection.scope["user"] = caller.user
        connection.scope["auth"] = caller
        if caller.via == "session" and method not in SAFE_METHODS:
            await check_own_site(connection)
        if access.permission is not None:
            _check_permission(caller, access.permission)
            await _check_reach(connection, route_handler, access.own)
        elif method not in SAFE_METHODS:
            _check_whole(caller)

    return guard


async def caller_of(connection: Connection, users: Users) -> Caller:
    """Who calls: by the token where one is sent, else by the session's cookie. Raises
    Unauthorized."""
    if "authorization" in connection.headers:
        caller = await users.caller_by_token(_bearer_token(connection))
        if caller is None:
            raise Unauthorized("the token is unknown, revoked or expired")
        return caller
    session = connection.cookies.get(SESSION_COOKIE)
    if not session:
        raise Unauthorized("a user's token is needed: Authorization: Bearer <token>")
    caller = await users.caller_by_session(session)
    if caller is None:
        raise Unauthorized("the session is over: sign in again")
    return caller


async def check_own_site(connection: Connection) -> None:
    """A change in a session comes from our own pages, and with the session's CSRF token in the
    header `x-csrf-token` or the form's field `csrf`. Raises Forbidden."""
    check_same_site(connection)
    await check_csrf(connection)


async def check_csrf(connection: Connection) -> None:
    """The second half of `check_own_site`, where the first was done. Raises Forbidden."""
    given = connection.headers.get(CSRF_HEADER)
    if given is None and isinstance(connection, Request):
        given = await _form_field(connection)
    expected = csrf_of(connection.cookies.get(SESSION_COOKIE, ""))
    if given is None or not hmac.compare_digest(given.encode(), expected.encode()):
        raise Forbidden(
            f"changes in a session need its CSRF token: {CSRF_HEADER}, or the field {CSRF_FIELD}",
            code="csrf",
        )


def check_same_site(connection: Connection) -> None:
    """A browser says that it is a page of ours that sends this; what is no browser says nothing.
    Raises Forbidden."""
    site = connection.headers.get("sec-fetch-site", "same-origin")
    origin = connection.headers.get("origin")
    host = connection.headers.get("host", "")
    if site != "same-origin" or (origin is not None and _host_of(origin) != host):
        raise Forbidden("changes in a session come from its own site", code="cross_site")


def tenant_of(request: Request[User, Any, Any]) -> str | None:
    """The tenant that whoever asks is held to; None for staff, who see all."""
    user = request.user
    return user.tenant_id if user.role in TENANT_ROLES else None


def may(request: Request[User, Caller, Any], permission: Permission) -> bool:
    """Whether whoever asks may do that, too."""
    return permission in request.auth.permissions


async def check_own(request: Request[User, Any, Any], kind: Own, named: str) -> None:
    """What a parameter of an address names is the tenant's own, where a tenant's role asks. Raises
    NotFound, in the same words for what is another's and for what does not exist."""
    held_to = tenant_of(request)
    if held_to is None:
        return
    if kind is Own.TENANT:
        owner: str | None = named
    else:
        owner = await owner_of(request.route_handler.opt, kind)(named)
    if owner != held_to:
        raise nothing_there()


def nothing_there() -> NotFound:
    """What a tenant's role is told of all that is not its own. It repeats no name, so that every
    such answer is the same."""
    return NotFound("there is nothing of that name")


def _check_permission(caller: Caller, permission: Permission) -> None:
    if permission in caller.permissions:
        return
    if permission in PERMISSIONS_OF[caller.user.role]:
        raise Forbidden(f"the token has not the scope {permission}")
    raise Forbidden(f"the role {caller.user.role} may not do this")


def _check_whole(caller: Caller) -> None:
    if caller.permissions != PERMISSIONS_OF[caller.user.role]:
        raise Forbidden("the token has scopes, and may not change its user's account")


async def _check_reach(
    connection: Connection, route_handler: BaseRouteHandler, own: Own | None
) -> None:
    user: User = connection.user
    if user.role not in TENANT_ROLES:
        return
    if own is None or user.tenant_id is None:
        raise Forbidden(f"the role {user.role} may not do this")
    owner: str | None
    if own is Own.LIST:
        named = connection.query_params.getall(Own.TENANT.value, [])
        owner = user.tenant_id if set(named) <= {user.tenant_id} else None
    elif own is Own.TENANT:
        owner = connection.path_params[own.value]
    else:
        owner = await owner_of(route_handler.opt, own)(connection.path_params[own.value])
    if owner != user.tenant_id:
        raise nothing_there()


def _host_of(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return None


async def _form_field(request: Request[Any, Any, Any]) -> str | None:
    fields = dict(await form_fields(request))
    field = fields.get(CSRF_FIELD)
    return field if isinstance(field, str) else None


def _bearer_token(connection: Connection) -> str:
    scheme, _, token = connection.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise Unauthorized("a user's token is needed: Authorization: Bearer <token>")
    return token.strip()
