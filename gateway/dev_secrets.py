"""The secrets of one `weir dev`: made at its first start, found again at every later one."""

import secrets
from pathlib import Path

import click
import msgspec

from backend.embedded.data_dir import write_private
from gateway.administration.credentials import new_key_secret, new_token_secret
from gateway.domain.account import Role
from gateway.domain.tenant import RequestClass

TENANTS = {"acme": "Acme", "globex": "Globex"}
USERS = {
    Role.ADMIN: "admin@weir.local",
    Role.FINANCE: "finance@weir.local",
    Role.OPERATOR: "operator@weir.local",
    Role.VIEWER: "viewer@weir.local",
    Role.TENANT_ADMIN: "acme@weir.local",
}
TENANT_OF_USERS = "acme"
"""The tenant in which whoever has a role of a tenant has it."""


class SeededUser(msgspec.Struct, frozen=True):
    """How a person, or their program, signs in."""

    email: str
    password: str
    token: str


class DevSecrets(msgspec.Struct, frozen=True):
    """What `secrets.json` holds: users by role, API keys by tenant and class."""

    cache_salt: str
    users: dict[Role, SeededUser]
    tenants: dict[str, dict[RequestClass, str]]


def kept_secrets(path: Path) -> DevSecrets:
    """The secrets in `path`, made and written there (mode 0600) where there are none. Users that
    an earlier release did not have are added.

    Raises ClickException where the file cannot be read or does not hold what it should.
    """
    try:
        kept = msgspec.json.decode(path.read_bytes(), type=DevSecrets)
    except FileNotFoundError:
        return _written(path, _made())
    except (OSError, msgspec.DecodeError) as error:
        raise click.ClickException(f"{path} cannot be read: {error}") from error
    missing = USERS.keys() - kept.users.keys()
    if not missing:
        return kept
    users = kept.users | {role: _new_user(role) for role in USERS if role in missing}
    return _written(path, msgspec.structs.replace(kept, users=users))


def _written(path: Path, secrets_now: DevSecrets) -> DevSecrets:
    write_private(path, msgspec.json.format(msgspec.json.encode(secrets_now)))
    return secrets_now


def _new_user(role: Role) -> SeededUser:
    return SeededUser(USERS[role], secrets.token_urlsafe(18), new_token_secret())


def _made() -> DevSecrets:
    return DevSecrets(
        cache_salt=secrets.token_urlsafe(32),
        users={role: _new_user(role) for role in USERS},
        tenants={
            tenant_id: {request_class: new_key_secret() for request_class in RequestClass}
            for tenant_id in TENANTS
        },
    )
