"""Roles and permissions in words, and the form of a new token, for pages of users and accounts."""

from typing import NamedTuple

from gateway.console.forms import Form
from gateway.domain.account import Role
from gateway.domain.permissions import PERMISSIONS_OF, Permission
from gateway.errors import Conflict, Unprocessable, WeirError

ROLES = {
    Role.ADMIN: "everything, users too",
    Role.OPERATOR: "sees all but money, drains workers",
    Role.FINANCE: "sees all, writes prices and invoices",
    Role.VIEWER: "sees all but money",
    Role.TENANT_ADMIN: "of one tenant: its keys, usage and invoices",
    Role.TENANT_MEMBER: "of one tenant: sees its limits, keys and usage",
}
PERMISSIONS = {
    Permission.TENANTS_READ: "see tenants, their limits and use",
    Permission.TENANTS_WRITE: "make and change tenants and limits",
    Permission.KEYS_READ: "see keys, never their secrets",
    Permission.KEYS_WRITE: "make, rotate and revoke keys",
    Permission.FLEET_READ: "see models, workers and hosted providers",
    Permission.FLEET_WRITE: "register and remove these",
    Permission.FLEET_DRAIN: "drain workers and put them back",
    Permission.LIVE_READ: "see what runs now",
    Permission.USAGE_READ: "see tokens and requests that were used",
    Permission.INVOICES_READ: "see invoices and what usage costs",
    Permission.INVOICES_WRITE: "issue, void and settle invoices",
    Permission.MONEY_READ: "see prices, unit cost and reconciliation",
    Permission.PRICES_WRITE: "set prices",
    Permission.AUDIT_READ: "see who changed what",
    Permission.USERS_READ: "see users",
    Permission.USERS_WRITE: "make and change users, give tokens",
}
EXPIRIES = (("30", "in 30 days"), ("90", "in 90 days"), ("365", "in a year"), ("", "never"))
REACHES = (("all", "all that the role may"), ("chosen", "only what is ticked"))
_TOKEN_NAMES = {"scopes": "reach"}
"""What is wrong with scopes is said once, above their boxes."""
_MADE_ALREADY = (
    "there is a token of that name already, and none was made now; its secret was shown when it was"
    " made and is not shown again. Revoke it to make another."
)
_DAY_MS = 24 * 3_600_000


class WantedToken(NamedTuple):
    """A token that somebody asks for; `scopes` None is all that the role may."""

    name: str
    scopes: list[str] | None
    expires_at_ms: int | None


def role_name(role: Role) -> str:
    """`tenant admin`."""
    return role.value.replace("_", " ")


def role_choices() -> list[tuple[str, str]]:
    """Every role, and what it is for."""
    return [(role.value, f"{role_name(role)}: {words}") for role, words in ROLES.items()]


def scopes_of(role: Role) -> list[tuple[str, str]]:
    """What a token of that role can be held to: each permission, and what it is."""
    held = PERMISSIONS_OF[role]
    return [(each.value, words) for each, words in PERMISSIONS.items() if each in held]


def empty_token_form() -> Form:
    """What the form of a new token shows at first."""
    return Form.filled({"name": "", "expires": "90", "reach": "all"})


def wanted_token(form: Form, *, now_ms: int) -> WantedToken:
    """What the form says. Raises Unprocessable for a choice that it does not offer."""
    days, reach = form.text("expires"), form.text("reach")
    if days not in dict(EXPIRIES):
        raise Unprocessable("expires: must be one of the choices", param="expires")
    if reach not in dict(REACHES):
        raise Unprocessable("reach: must be one of the choices", param="reach")
    return WantedToken(
        form.text("name"),
        None if reach == "all" else form.all("scopes"),
        now_ms + int(days) * _DAY_MS if days else None,
    )


def refused_token(form: Form, error: WeirError) -> Form:
    """The form of a token with why there is none. A page that shows a new one and is reloaded sends
    its form again: that makes no second."""
    if isinstance(error, Conflict):
        form.errors["name"] = _MADE_ALREADY
        return form
    return form.refused(error, _TOKEN_NAMES)
