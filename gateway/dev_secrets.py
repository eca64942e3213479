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
USERS = {Role.ADMIN: "admin@weir.local", Role.FINANCE: "finance@weir.local"}


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
    """The secrets in `path`, made and written there (mode 0600) where there are none.

    Raises ClickException where the file cannot be read or does not hold what it should.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=DevSecrets)
    except FileNotFoundError:
        made = _made()
        write_private(path, msgspec.json.format(msgspec.json.encode(made)))
        return made
    except (OSError, msgspec.DecodeError) as error:
        raise click.ClickException(f"{path} cannot be read: {error}") from error


def _made() -> DevSecrets:
    return DevSecrets(
        cache_salt=secrets.token_urlsafe(32),
        users={
            role: SeededUser(email, secrets.token_urlsafe(18), new_token_secret())
            for role, email in USERS.items()
        },
        tenants={
            tenant_id: {request_class: new_key_secret() for request_class in RequestClass}
            for tenant_id in TENANTS
        },
    )
