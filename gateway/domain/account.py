"""Who administers Weir, and what they did."""

from enum import StrEnum
from typing import Any

import msgspec


class Role(StrEnum):
    """What a user may do on the admin and finance APIs."""

    ADMIN = "admin"
    """Everything."""
    FINANCE = "finance"
    """Reads all; writes prices and invoices."""
    OPERATOR = "operator"
    """Reads all; drains workers."""
    VIEWER = "viewer"
    """Reads all."""
    TENANT_ADMIN = "tenant_admin"
    """Of one tenant: reads what is its own, writes its keys and their limits."""
    TENANT_MEMBER = "tenant_member"
    """Of one tenant: reads its limits, use, keys and usage."""


TENANT_ROLES = frozenset({Role.TENANT_ADMIN, Role.TENANT_MEMBER})
"""Roles that are held in one tenant, and see nothing of another."""


class User(msgspec.Struct, frozen=True, kw_only=True):
    """A person (or their program) with a role; the password is known only as an Argon2id hash."""

    id: str
    email: str
    role: Role
    tenant_id: str | None = None
    """The tenant that a tenant's role is held in; None for every other role."""
    disabled: bool = False
    created_at_ms: int
    locked_until_ms: int | None = None
    """Until when no password is taken, after too many wrong ones. It may be past."""
    last_login_at_ms: int | None = None


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """What a log-in gives. `secret` is in no other answer; only its digest is stored."""

    secret: str
    user: User
    expires_at_ms: int
    """When it ends at the latest; it ends earlier where it is idle for long."""


class OpenSession(msgspec.Struct, frozen=True, kw_only=True):
    """A session as it is listed: where it was begun and when it was last of use."""

    id: str
    created_at_ms: int
    seen_at_ms: int
    """To the minute."""
    expires_at_ms: int
    address: str | None
    """The address that it was begun from."""


class UserToken(msgspec.Struct, frozen=True, kw_only=True):
    """A live token as it is listed. Its secret was shown once."""

    name: str
    scopes: tuple[str, ...] | None
    """The permissions that it is held to; None: all that its user's role has."""
    created_at_ms: int
    expires_at_ms: int | None
    last_used_at_ms: int | None
    """To the minute."""


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One change: what it was, who made it, and the subject before and after.

    `before` is None where the subject was created. Neither holds a secret or a digest.
    """

    id: int
    at_ms: int
    actor: str
    action: str
    subject_kind: str
    subject_id: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    tenant_id: str | None = None
    """The tenant that the subject is or belongs to."""
    change_id: str | None = None
    """Shared by all entries of one change; None where a release before wrote the entry."""
    hash: str = ""
    """Of the chain, in hex: over this entry and the hash of the one before."""
