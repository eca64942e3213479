"""Where each role may go in the console, written by hand, and who is logged in as it."""

from typing import Any

from console.browser import Visitor
from weir_dev import WeirDev

STAFF = ("Live", "Tenants", "Usage", "Requests", "Workers")
MONEY = ("Prices", "Invoices", "Credit notes", "Unit cost", "Reconciliation")
PEOPLE = ("Audit", "Users")
PLACES: dict[str, tuple[str, ...]] = {
    "admin": (*STAFF, *MONEY, *PEOPLE),
    "operator": (*STAFF, *PEOPLE),
    "finance": (*STAFF, *MONEY, *PEOPLE),
    "viewer": (*STAFF, *PEOPLE),
    "tenant_admin": ("Overview", "Keys", "Usage", "Requests", "Invoices"),
    "tenant_member": ("Overview", "Keys", "Usage", "Requests"),
}
"""The names in the navigation, in their order."""


def user(system: WeirDev, role: str) -> dict[str, Any]:
    """The user of that role that `weir dev` made; it makes no member of a tenant, so that one is
    made here."""
    found: dict[str, Any] | None = system.ready["users"].get(role)
    return found or user_of(system, role, system.tenant)


def user_of(system: WeirDev, role: str, tenant: str) -> dict[str, Any]:
    """A user that is made here, of a tenant, where it is not made yet."""
    made = {"email": f"{role}@{tenant}.weir.test", "password": "correct horse battery"}
    body = {**made, "role": role, "tenant_id": tenant}
    reply = system.admin("POST", "/admin/v1/users", body)
    assert reply.status in (201, 409), reply.raw
    return made


def names_in_navigation(visitor: Visitor) -> list[str]:
    """What the navigation of the last page leads to."""
    page = visitor.context.pages[-1]
    places = page.get_by_role("navigation", name="Console", exact=True)
    return places.get_by_role("link").all_inner_texts()
