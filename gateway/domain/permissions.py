"""What each role may do, and what is left of it to a token that was given less.

A permission is an area and a deed. Roles of a tenant hold theirs for their own tenant alone;
whoever checks one asks for the tenant too. Pure.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Literal

import msgspec

from gateway.domain.account import Role, User


class Permission(StrEnum):
    """One thing that may be done outside `/v1`; as text, a scope of a token."""

    TENANTS_READ = "tenants.read"
    """Tenants, their limits, and what they use now."""
    TENANTS_WRITE = "tenants.write"
    KEYS_READ = "keys.read"
    KEYS_WRITE = "keys.write"
    """Keys made, rotated, revoked, and their own limits within those of their tenant."""
    FLEET_READ = "fleet.read"
    """Models, workers and hosted providers."""
    FLEET_WRITE = "fleet.write"
    FLEET_DRAIN = "fleet.drain"
    """A worker taken out of dispatch, and put back."""
    LIVE_READ = "live.read"
    """What runs now, over all tenants."""
    USAGE_READ = "usage.read"
    """Tokens and requests that were used, without money."""
    INVOICES_READ = "invoices.read"
    """Invoices, credit notes, and what usage costs."""
    INVOICES_WRITE = "invoices.write"
    MONEY_READ = "money.read"
    """The price book, unit cost, reconciliation and budget alerts."""
    PRICES_WRITE = "prices.write"
    AUDIT_READ = "audit.read"
    USERS_READ = "users.read"
    USERS_WRITE = "users.write"


_VIEWER = frozenset(
    {
        Permission.TENANTS_READ,
        Permission.KEYS_READ,
        Permission.FLEET_READ,
        Permission.LIVE_READ,
        Permission.USAGE_READ,
        Permission.AUDIT_READ,
        Permission.USERS_READ,
    }
)
_MEMBER = frozenset({Permission.TENANTS_READ, Permission.KEYS_READ, Permission.USAGE_READ})

PERMISSIONS_OF: Mapping[Role, frozenset[Permission]] = {
    Role.ADMIN: frozenset(Permission),
    Role.OPERATOR: _VIEWER | {Permission.FLEET_DRAIN},
    Role.FINANCE: _VIEWER
    | {
        Permission.INVOICES_READ,
        Permission.INVOICES_WRITE,
        Permission.MONEY_READ,
        Permission.PRICES_WRITE,
    },
    Role.VIEWER: _VIEWER,
    Role.TENANT_ADMIN: _MEMBER | {Permission.KEYS_WRITE, Permission.INVOICES_READ},
    Role.TENANT_MEMBER: _MEMBER,
}


def permissions_of(
    role: Role, scopes: frozenset[Permission] | None = None
) -> frozenset[Permission]:
    """What a user of that role may do, or a token of theirs that is held to `scopes`: a scope that
    the role does not have gives nothing."""
    held = PERMISSIONS_OF[role]
    return held if scopes is None else held & scopes


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """Who asks outside `/v1`, and what they may do there: what their role may, of a token only as
    far as its scopes go."""

    user: User
    permissions: frozenset[Permission]
    via: Literal["token", "session"]
    """A session comes in a cookie, which browsers send on their own; a token does not."""
