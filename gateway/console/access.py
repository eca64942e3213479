"""What a page says of who may see it, beside its own code: `opt=page(Permission.X)`.

It says the same as the API's routes do with `needs`, and whom the page is for besides.
"""

from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from gateway.domain.account import TENANT_ROLES, User
from gateway.domain.permissions import Caller, Permission
from gateway.http.access import Own, anyone, needs, signed_in

PAGE_OPTION = "page"


class Audience(Enum):
    """Whom a page is for."""

    STAFF = auto()
    """Those who run Weir: every role but a tenant's."""
    TENANT = auto()
    """The roles of a tenant; the page shows what is that tenant's own."""
    EVERYONE = auto()
    """Whoever is logged in."""
    ANYONE = auto()
    """Whoever asks, logged in or not."""


@dataclass(frozen=True)
class PageAccess:
    """What it takes to see a page or to send a form there."""

    audience: Audience
    permission: Permission | None = None

    def allows(self, caller: Caller) -> bool:
        """Whether this caller may, logged in as they are."""
        if self.permission is not None and self.permission not in caller.permissions:
            return False
        return self.audience in (Audience.EVERYONE, Audience.ANYONE, _audience_of(caller.user))


def page(permission: Permission) -> dict[str, Any]:
    """The `opt` of a page, or of what its forms are sent to, for those who run Weir."""
    return {PAGE_OPTION: PageAccess(Audience.STAFF, permission), **needs(permission)}


def own_page(permission: Permission) -> dict[str, Any]:
    """The `opt` of a page for the roles of a tenant; `visit.tenant_id` says which it is."""
    return {
        PAGE_OPTION: PageAccess(Audience.TENANT, permission),
        **needs(permission, own=Own.LIST),
    }


def shared_page(permission: Permission) -> dict[str, Any]:
    """The `opt` of a page for those who run Weir, who see all, and for the roles of a tenant, who
    see what is `visit.held_to`'s."""
    return {
        PAGE_OPTION: PageAccess(Audience.EVERYONE, permission),
        **needs(permission, own=Own.LIST),
    }


def personal_page() -> dict[str, Any]:
    """The `opt` of a page for whoever is logged in: their own account."""
    return {PAGE_OPTION: PageAccess(Audience.EVERYONE), **signed_in()}


def open_page() -> dict[str, Any]:
    """The `opt` of a page for whoever asks; forms sent there must come from this server's pages."""
    return {PAGE_OPTION: PageAccess(Audience.ANYONE), **anyone()}


def page_access(options: dict[str, Any], path: str) -> PageAccess:
    """What a handler says of itself. Raises LookupError where it says nothing."""
    access = options.get(PAGE_OPTION)
    if not isinstance(access, PageAccess):
        raise LookupError(f"the page {path} does not say who may see it: opt=page(...)")
    return access


def _audience_of(user: User) -> Audience:
    return Audience.TENANT if user.role in TENANT_ROLES else Audience.STAFF
