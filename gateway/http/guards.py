"""Who may do what outside `/v1`: a user's bearer token, and the role it carries."""

from typing import Any, Protocol

from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler
from litestar.types import Guard

from gateway.domain.account import Role, User
from gateway.errors import Forbidden, Unauthorized

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
WRITERS_OPTION = "writers"
"""A route's `opt` that names the roles that may write there; only admins may where it is absent."""


class Users(Protocol):
    """Who a token belongs to."""

    async def user_by_token(self, secret: str) -> User | None:
        """The user, or None where the token is unknown, revoked or expired."""


def role_guard(
    users: Users,
    *,
    readers: frozenset[Role] = frozenset(Role),
    writers: frozenset[Role] = frozenset({Role.ADMIN}),
) -> Guard:
    """A guard that lets those read whose role is among `readers`, everyone unless it says so, and
    write those whose role is among `writers` or those that the route itself names. The user is then
    `request.user`.

    Raises Unauthorized without a valid token, Forbidden where the role does not allow it.
    """

    async def guard(
        connection: ASGIConnection[Any, Any, Any, Any], route_handler: BaseRouteHandler
    ) -> None:
        user = await users.user_by_token(_bearer_token(connection))
        if user is None:
            raise Unauthorized("the token is unknown, revoked or expired")
        connection.scope["user"] = user
        allowed = readers
        if connection.scope.get("method") not in SAFE_METHODS:
            allowed = route_handler.opt.get(WRITERS_OPTION, writers)
        if user.role not in allowed:
            raise Forbidden(f"the role {user.role} may not do this")

    return guard


def _bearer_token(connection: ASGIConnection[Any, Any, Any, Any]) -> str:
    scheme, _, token = connection.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise Unauthorized("a user's token is needed: Authorization: Bearer <token>")
    return token.strip()
