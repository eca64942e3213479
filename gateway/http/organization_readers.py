"""Who reads an organization's usage below `/v1`: a tenant by its API key, finance by a user's
token."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from gateway.administration.credentials import TOKEN_PREFIX
from gateway.errors import InvalidApiKey, PermissionDenied
from gateway.http.billing import ROLES
from gateway.http.guards import Users


@dataclass(frozen=True)
class Reader:
    """Who asks: a tenant, which sees itself, or finance (`tenant_id` None)."""

    tenant_id: str | None

    def tenants(self, asked: Collection[str] | None) -> Collection[str] | None:
        """The tenants that are read where `asked` are asked for; None is all. Raises
        PermissionDenied where a tenant asks for another, whether there is one or not."""
        if self.tenant_id is None:
            return asked
        if asked is not None and set(asked) != {self.tenant_id}:
            raise PermissionDenied(
                f"project_ids: this API key sees {self.tenant_id!r} and nothing else",
                code="project_not_allowed",
                param="project_ids",
            )
        return (self.tenant_id,)


async def reader_of(
    headers: Mapping[bytes, bytes], tenant_of_key: Callable[[], str], users: Users | None
) -> Reader:
    """Whose usage is read. A secret that begins as users' tokens do is one: no API key does.

    Raises InvalidApiKey, PermissionDenied where the user's role sees no money, and what
    `tenant_of_key` does.
    """
    secret = headers.get(b"authorization", b"").strip().partition(b" ")[2].strip()
    if users is None or not secret.startswith(TOKEN_PREFIX.encode()):
        return Reader(tenant_of_key())
    scheme = headers[b"authorization"].strip().partition(b" ")[0]
    user = None
    if scheme.lower() == b"bearer":
        user = await users.user_by_token(secret.decode(errors="surrogateescape"))
    if user is None:
        raise InvalidApiKey("the token is unknown, revoked or expired")
    if user.role not in ROLES:
        raise PermissionDenied(f"the role {user.role} may not do this", code="role_not_allowed")
    return Reader(None)
