"""What a route asks of whoever calls it, said beside its handler.

`opt={**described(...), **needs(Permission.X)}` names the one permission that a route needs, and
with `own=` where tenants' roles may go for what is their own. `signed_in()` is for what everybody
does with their own account, `anyone()` for the page where one signs in. A route below one of our
routers that says none of them cannot be mounted.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from litestar.handlers import BaseRouteHandler
from litestar.routes import BaseRoute, HTTPRoute

from gateway.domain.permissions import Permission

ACCESS_OPTION = "access"
OWNER_OPTION = "owner of "


class Own(StrEnum):
    """How a route says whose its subject is: the parameter of its path that names it."""

    TENANT = "tenant_id"
    KEY = "key_id"
    INVOICE = "invoice_id"
    CREDIT_NOTE = "credit_note_id"
    LIST = "list"
    """Nothing in the path: the handler shows no more than what is `tenant_of(request)`'s."""


OwnerOf = Callable[[str], Awaitable[str | None]]
"""The tenant whose the subject of that name is; None where there is none that tenants may see."""


@dataclass(frozen=True)
class Access:
    """What a route asks for: a permission, or only that it is known who calls, or nothing."""

    permission: Permission | None = None
    own: Own | None = None
    """Where tenants' roles come for what is their own; None is nowhere."""
    to_anyone: bool = False


def needs(permission: Permission, *, own: Own | None = None) -> dict[str, Any]:
    """The part of a handler's `opt` that says who may call it."""
    return {ACCESS_OPTION: Access(permission, own)}


def signed_in() -> dict[str, Any]:
    """The same for what every user may do, of a tenant or not, and only to their own account. A
    token that was given less than its user's role changes nothing there: it could give itself
    more."""
    return {ACCESS_OPTION: Access()}


def anyone() -> dict[str, Any]:
    """The same for what is open to all, such as the page where one signs in."""
    return {ACCESS_OPTION: Access(to_anyone=True)}


def owned_by(owners: Mapping[Own, OwnerOf]) -> dict[str, Any]:
    """The `opt` of a router, by which its guard finds whose the subjects are that it serves. Give
    functions, not methods: routers are copied with all that they hold."""
    return {OWNER_OPTION + kind.value: owner_of for kind, owner_of in owners.items()}


def access_of(options: Mapping[str, Any], path: str) -> Access:
    """What a route asks for. Raises LookupError where it does not say so."""
    access = options.get(ACCESS_OPTION)
    if not isinstance(access, Access):
        raise LookupError(f"{path} names no permission: opt=needs(...) beside described(...)")
    return access


def owner_of(options: Mapping[str, Any], kind: Own) -> OwnerOf:
    """Who knows whose a subject of that kind is. Raises LookupError where nobody does."""
    found: OwnerOf | None = options.get(OWNER_OPTION + kind.value)
    if found is None:
        raise LookupError(f"nobody says whose the subject of a {kind.value} is: opt=owned_by(...)")
    return found


def check_access(routes: Iterable[BaseRoute]) -> None:
    """Raises LookupError for the first route that does not say what it asks for, or of whose
    subjects nobody knows the owner."""
    for route in routes:
        for handler in _handlers_of(route):
            options: dict[str, Any] = {}
            for layer in handler.ownership_layers:
                options |= layer.opt or {}
            access = access_of(options, route.path)
            if access.own not in (None, Own.LIST, Own.TENANT):
                owner_of(options, access.own)


def _handlers_of(route: BaseRoute) -> list[BaseRouteHandler]:
    if isinstance(route, HTTPRoute):
        # OPTIONS is the framework's own: it says which methods there are.
        return [each for each in route.route_handlers if each.http_methods != {"OPTIONS"}]
    return [route.route_handler]  # type: ignore[attr-defined]  # of every other kind
