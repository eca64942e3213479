"""What was withdrawn from those who are served: a key was revoked, a tenant suspended.

New requests are refused by `authenticate`. Here is what happens to those that are under way: they
end, whether they wait or stream, and are told why. A key that expires, or whose grace is over, ends
nothing: that was known when they began.
"""

from collections.abc import Container, Iterable
from dataclasses import dataclass
from typing import Protocol

from gateway.domain.tenant import ApiKey, Tenant
from gateway.errors import InvalidApiKey
from gateway.serving.ports import Directory

NO_GRACE_MS = 1_000
"""A rotated key whose grace is over so soon was rotated without any."""


@dataclass(frozen=True)
class Withdrawn:
    """Tenants and keys by their ids."""

    tenants: frozenset[str]
    keys: frozenset[str]

    @property
    def is_nothing(self) -> bool:
        """Whether nobody is concerned."""
        return not (self.tenants or self.keys)

    def refusal(self, tenant_id: str, key_id: str) -> InvalidApiKey | None:
        """What is told to a request of that tenant and key; None where it may go on."""
        if tenant_id in self.tenants:
            return InvalidApiKey("the tenant of this API key was suspended")
        if key_id in self.keys:
            return InvalidApiKey("the API key was revoked")
        return None


class Endable(Protocol):
    """Where requests are under way."""

    def end_withdrawn(self, withdrawn: Withdrawn) -> None:
        """End those that it concerns."""


def withdrawn_in(
    tenants: Iterable[Tenant],
    keys: Iterable[ApiKey],
    *,
    now_ms: int,
    is_new: bool,
    rotated_before: Container[str] = (),
) -> Withdrawn:
    """What is withdrawn of tenants and keys as they are now. `is_new`: these have just changed;
    otherwise a rotated key may have had its grace, and it counts only what says so itself. So too
    of keys, by their ids, that were `rotated_before` they changed."""
    return Withdrawn(
        tenants=frozenset(tenant.id for tenant in tenants if tenant.suspended),
        keys=frozenset(
            key.id
            for key in keys
            if key.revoked_at_ms is not None
            or (is_new and key.id not in rotated_before and _had_no_grace(key, now_ms))
        ),
    )


def check_not_withdrawn(used: ApiKey, directory: Directory) -> None:
    """Raise InvalidApiKey where a key or its tenant was withdrawn since it was read."""
    key, tenant = directory.key_by_digest(used.digest), directory.tenant(used.tenant_id)
    if key is None or tenant is None:
        raise InvalidApiKey("the API key is gone")
    refusal = withdrawn_in([tenant], [key], now_ms=0, is_new=False).refusal(tenant.id, key.id)
    if refusal is not None:
        raise refusal


def _had_no_grace(key: ApiKey, now_ms: int) -> bool:
    return (
        key.rotated_to is not None
        and key.expires_at_ms is not None
        and key.expires_at_ms <= now_ms + NO_GRACE_MS
    )
