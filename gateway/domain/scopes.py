"""The scopes of a request: where its limits apply, and what is used of them."""

from dataclasses import dataclass

from gateway.domain.tenant import ApiKey, ModelLimits, Tenant


@dataclass(frozen=True)
class ScopeLimits:
    """The limits of one scope, with the version of the row they come from. None is no limit."""

    scope: str
    version: int
    max_sequences: int | None
    tpm: int | None
    rpm: int | None

    @property
    def shown(self) -> str:
        """The scope in a sentence."""
        return self.scope.replace("/", " and ").replace(":", " ")


@dataclass(frozen=True)
class ScopeUse:
    """A scope's limits in force and its use, after a decision."""

    limits: ScopeLimits
    sequences: int
    tokens: int
    requests: int
    reset_ms: int
    """Until the window is empty, if nothing more is charged."""


def scopes_of(tenant: Tenant, key: ApiKey, model: str) -> tuple[ScopeLimits, ...]:
    """The four scopes of a request, the widest first."""
    none = ModelLimits()
    of_tenant = tenant.limits.models.get(model, none)
    of_key = key.limits.models.get(model, none)
    key_scope, model_scope = f"key:{key.id}", f"model:{model}"
    wide = (
        ("tenant", tenant.limits_version, tenant.limits),
        (key_scope, key.limits_version, key.limits),
        (model_scope, tenant.limits_version, of_tenant),
        (f"{key_scope}/{model_scope}", key.limits_version, of_key),
    )
    return tuple(
        ScopeLimits(scope, version, limits.max_sequences, limits.tpm, limits.rpm)
        for scope, version, limits in wide
    )
