"""Admission's specification with a clock that a test moves."""

from memory_ports import START_MS, TTL_MS
from tenant_examples import a_key, a_tenant

from gateway.domain import admission
from gateway.domain.admission import (
    Demand,
    Granted,
    Lease,
    MoneyUnknown,
    Paused,
    Refused,
    Renewed,
    Settled,
    TenantState,
)
from gateway.domain.scopes import ScopeLimits, scopes_of
from gateway.domain.tenant import Limits
from gateway.domain.window import Window


def scopes(
    *, tenant: Limits | None = None, key: Limits | None = None, model: str = "m", version: int = 1
) -> tuple[ScopeLimits, ...]:
    return scopes_of(
        a_tenant(tenant, limits_version=version), a_key(key, limits_version=version), model
    )


class Store:
    """One tenant's state, and what is asked of it."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.state = TenantState()
        self.now_ms = START_MS
        self.offered = scopes(tenant=limits)

    def acquire(
        self,
        rid: str,
        tokens: int = 1,
        *,
        sequences: int = 1,
        floor: int | None = None,
        offered: tuple[ScopeLimits, ...] | None = None,
    ) -> Granted | Refused | Paused | MoneyUnknown:
        demand = Demand(rid, sequences, tokens, tokens if floor is None else floor)
        return admission.acquire(
            self.state, demand, offered or self.offered, now_ms=self.now_ms, ttl_ms=TTL_MS
        )

    def settle(self, rid: str, actual: int, *, ran: bool = True) -> Settled:
        return admission.settle(self.state, rid, actual_tokens=actual, ran=ran, now_ms=self.now_ms)

    def renew(self, rid: str, lease: Lease) -> Renewed:
        return admission.renew(self.state, {rid: lease}, now_ms=self.now_ms, ttl_ms=TTL_MS)

    @property
    def tokens(self) -> int:
        return self.window.tokens

    @property
    def requests(self) -> int:
        return self.window.requests

    @property
    def window(self) -> Window:
        """The tenant's, as of now."""
        book = self.state.scopes.get("tenant")
        if book is None:
            return Window()
        book.window.advance(self.now_ms)
        return book.window


def refused(decision: object) -> Refused:
    assert isinstance(decision, Refused)
    return decision


def granted(decision: object) -> Granted:
    assert isinstance(decision, Granted)
    return decision
