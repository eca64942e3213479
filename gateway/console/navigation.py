"""The places of the console, and which of them somebody may go to."""

from dataclasses import dataclass

from gateway.domain.account import TENANT_ROLES
from gateway.domain.permissions import Caller, Permission


@dataclass(frozen=True)
class Place:
    """A page that the navigation leads to; `letter` follows `g` on the keyboard."""

    name: str
    path: str
    permission: Permission
    letter: str
    group: str | None = None


STAFF_PLACES = (
    Place("Live", "/console/live", Permission.LIVE_READ, "l"),
    Place("Tenants", "/console/tenants", Permission.TENANTS_READ, "t"),
    Place("Usage", "/console/usage", Permission.USAGE_READ, "u"),
    Place("Requests", "/console/requests", Permission.USAGE_READ, "q"),
    Place("Workers", "/console/workers", Permission.FLEET_READ, "w"),
    Place("Prices", "/console/money/prices", Permission.MONEY_READ, "p", "Money"),
    Place("Invoices", "/console/money/invoices", Permission.INVOICES_READ, "i", "Money"),
    Place("Credit notes", "/console/money/credit-notes", Permission.INVOICES_READ, "c", "Money"),
    Place("Unit cost", "/console/money/unit-cost", Permission.MONEY_READ, "n", "Money"),
    Place("Reconciliation", "/console/money/reconciliation", Permission.MONEY_READ, "r", "Money"),
    Place("Audit", "/console/audit", Permission.AUDIT_READ, "a"),
    Place("Users", "/console/users", Permission.USERS_READ, "s"),
)
TENANT_PLACES = (
    Place("Overview", "/console/own", Permission.TENANTS_READ, "o"),
    Place("Keys", "/console/own/keys", Permission.KEYS_READ, "k"),
    Place("Usage", "/console/own/usage", Permission.USAGE_READ, "u"),
    Place("Requests", "/console/requests", Permission.USAGE_READ, "q"),
    Place("Invoices", "/console/own/invoices", Permission.INVOICES_READ, "i"),
)


def places_of(caller: Caller) -> list[Place]:
    """Where this caller may go, in the order of the navigation."""
    places = TENANT_PLACES if caller.user.role in TENANT_ROLES else STAFF_PLACES
    return [place for place in places if place.permission in caller.permissions]


def current_place(places: list[Place], path: str) -> Place | None:
    """The place that a path lies in: the one with the longest path that begins it."""
    around = [place for place in places if path == place.path or path.startswith(place.path + "/")]
    return max(around, key=lambda place: len(place.path), default=None)
