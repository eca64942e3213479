"""The scopes of a request: where its limits apply, and what is used of them."""

from dataclasses import dataclass

from billing.domain.money import parse_amount
from gateway.domain.tenant import ApiKey, Limits, ModelLimits, Tenant


@dataclass(frozen=True)
class ScopeLimits:
    """The limits of one scope, with the version of the row they come from. None is no limit."""

    scope: str
    version: int
    max_sequences: int | None
    tpm: int | None
    rpm: int | None
    budget_pico: int | None = None
    """What a month may cost, in pico-units of the tenant's currency."""

    @property
    def is_of_key(self) -> bool:
        """Whether it is one API key's, of a model or not."""
        return self.scope.startswith("key:")

    @property
    def shown(self) -> str:
        """The scope in a sentence; a model's id may itself have slashes and colons."""
        key, found, model = self.scope.partition("model:")
        names = [key.rstrip("/").replace(":", " ", 1)] if key else []
        if found:
            names.append(f"model {model}")
        return " and ".join(names)


@dataclass(frozen=True)
class ScopeUse:
    """A scope's limits in force and its use, after a decision."""

    limits: ScopeLimits
    sequences: int
    tokens: int
    requests: int
    reset_ms: int
    """Until the window is empty, if nothing more is charged."""
    spent_pico: int | None = None
    reserved_pico: int | None = None
    """The month's money; both None where the store does not know it."""


def scopes_of(tenant: Tenant, key: ApiKey, model: str) -> tuple[ScopeLimits, ...]:
    """The four scopes of a request, the widest first.

    Raises ValueError where a budget is no amount of the tenant's currency; what is written is
    checked, so that no such limit is ever kept.
    """
    none = ModelLimits()
    of_tenant = tenant.limits.models.get(model, none)
    of_key = key.limits.models.get(model, none)
    key_scope, model_scope = f"key:{key.id}", f"model:{model}"
    return (
        tenant_scope(tenant),
        _scope(key_scope, key.limits_version, key.limits, tenant.currency),
        _scope(model_scope, tenant.limits_version, of_tenant, tenant.currency),
        _scope(f"{key_scope}/{model_scope}", key.limits_version, of_key, tenant.currency),
    )


def tenant_scope(tenant: Tenant) -> ScopeLimits:
    """The widest scope alone, as `scopes_of` has it."""
    return _scope("tenant", tenant.limits_version, tenant.limits, tenant.currency)


def model_scope(tenant: Tenant, model: str) -> ScopeLimits:
    """The tenant's use of one model alone, as `scopes_of` has it."""
    limits = tenant.limits.models.get(model, ModelLimits())
    return _scope(f"model:{model}", tenant.limits_version, limits, tenant.currency)


def _scope(scope: str, version: int, limits: Limits | ModelLimits, currency: str) -> ScopeLimits:
    budget = limits.monthly_budget
    return ScopeLimits(
        scope,
        version,
        limits.max_sequences,
        limits.tpm,
        limits.rpm,
        None if budget is None else parse_amount(budget, currency),
    )
