"""Who reads an organization's usage below `/v1`: a tenant by its API key, a user by their token."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from gateway.administration.credentials import TOKEN_PREFIX
from gateway.domain.account import TENANT_ROLES
from gateway.domain.permissions import PERMISSIONS_OF, Permission
from gateway.errors import InvalidApiKey, PermissionDenied
from gateway.http.guards import Users


@dataclass(frozen=True)
class Reader:
    """Who asks: a tenant or one of its people, who see it alone, or staff (`tenant_id` None)."""

    tenant_id: str | None

    def tenants(self, asked: Collection[str] | None) -> Collection[str] | None:
        """The tenants that are read where `asked` are asked for; None is all. Raises
        PermissionDenied where a tenant asks for another, whether there is one or not."""
        if self.tenant_id is None:
            return asked
        if asked is not None and set(asked) != {self.tenant_id}:
            raise PermissionDenied(
                f"project_ids: whoever asks sees {self.tenant_id!r} and nothing else",
                code="project_not_allowed",
                param="project_ids",
            )
        return (self.tenant_id,)


async def reader_of(
    headers: Mapping[bytes, bytes],
    tenant_of_key: Callable[[], str],
    users: Users | None,
    permission: Permission,
) -> Reader:
    """Whose usage is read. A secret that begins as users' tokens do is one: no API key does.

    Raises InvalidApiKey, PermissionDenied where the user's role or the token's scopes do not have
    `permission`, and what `tenant_of_key` does.
    """
    secret = headers.get(b"authorization", b"").strip().partition(b" ")[2].strip()
    if users is None or not secret.startswith(TOKEN_PREFIX.encode()):
        return Reader(tenant_of_key())
    scheme = headers[b"authorization"].strip().partition(b" ")[0]
    caller = None
    if scheme.lower() == b"bearer":
        caller = await users.caller_by_token(secret.decode(errors="surrogateescape"))
    if caller is None:
        raise InvalidApiKey("the token is unknown, revoked or expired")
    user = caller.user
    if permission in caller.permissions:
        return Reader(user.tenant_id if user.role in TENANT_ROLES else None)
    if permission in PERMISSIONS_OF[user.role]:
        raise PermissionDenied(f"the token has not the scope {permission}", code="scope_missing")
    raise PermissionDenied(f"the role {user.role} may not do this", code="role_not_allowed")
