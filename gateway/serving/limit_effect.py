"""What a change of a tenant's limits would do, from what the stores know now. Saves nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import msgspec

from gateway.domain.limit_effect import BUDGET, Place, Promised, capacity_of, effects
from gateway.domain.scopes import ScopeLimits, ScopeUse, model_scope, scopes_of, tenant_scope
from gateway.domain.tenant import ApiKey, Limits, Tenant, TenantLimits
from gateway.serving.limit_headers import committed_pico
from gateway.serving.month_now import month_now
from gateway.serving.ports import Ledger, LedgerUnavailable
from gateway.serving.queue_view import Json, Uses, queued_of


@dataclass(frozen=True)
class Change:
    """A tenant as it is, the limits that it has and would have, and what all other tenants that are
    not suspended are promised, by the name of the limit."""

    tenant: Tenant
    now: TenantLimits
    then: TenantLimits
    others: Mapping[str, Promised]


@dataclass(frozen=True)
class KeyChange:
    """A key and its tenant as they are, and the limits that the key has and would have."""

    tenant: Tenant
    key: ApiKey
    now: Limits
    then: Limits


async def limit_effect(
    change: Change,
    ledger: Ledger | None,
    uses: Uses,
    *,
    now_ms: int,
    tokens_last_minute: int | None = None,
) -> Json:
    """The body of the answer. `uses` are all pools; without a ledger nothing that runs is known;
    `tokens_last_minute` is what all tenants were
    charged in the last minute, None where it is not known."""
    used, degraded = await _used(change, ledger, uses, now_ms)
    tenant = change.tenant
    unseen = [pool for pool, use in uses.items() if use is None]
    rooms = [room for use in uses.values() if use is not None for room in use.rooms]
    pool: Json | None = None
    if not unseen:
        pool = {**asdict(capacity_of(rooms, now_ms)), "tokens_last_minute": tokens_last_minute}
    return {
        "tenant_id": tenant.id,
        "suspended": tenant.suspended,
        "limits": msgspec.to_builtins(
            effects(change.now, change.then, used, currency=tenant.currency)
        ),
        "promised": {
            name: _promised(others, getattr(change.now, name), getattr(change.then, name), tenant)
            for name, others in change.others.items()
        },
        "pool": pool,
        "degraded": [*degraded, *(f"queue:{name}" for name in unseen)],
    }


async def key_limit_effect(change: KeyChange, ledger: Ledger, *, now_ms: int) -> Json:
    """The same of a key, as far as it is about the key: `limits` and `degraded`."""
    tenant = change.tenant
    models = sorted({*change.now.models, *change.then.models})
    scopes = [
        scopes_of(tenant, change.key, "")[1],
        *(scopes_of(tenant, change.key, model)[3] for model in models),
    ]
    used, degraded = await _used_of(tenant, models, scopes, ledger, now_ms)
    found = effects(change.now, change.then, used, currency=tenant.currency)
    return {"limits": msgspec.to_builtins(found), "degraded": degraded}


def _promised(others: Promised, now: int | None, then: int | None, tenant: Tenant) -> Json:
    """A suspended tenant is promised nothing."""
    before, after = (
        others if tenant.suspended else others.with_one(limit) for limit in (now, then)
    )
    return {
        "now": before.total,
        "then": after.total,
        "without_limit_now": before.unlimited,
        "without_limit_then": after.unlimited,
    }


async def _used(
    change: Change, ledger: Ledger | None, uses: Uses, now_ms: int
) -> tuple[dict[Place, int], list[str]]:
    tenant = change.tenant
    models = sorted({*change.now.models, *change.then.models})
    scopes = [tenant_scope(tenant), *(model_scope(tenant, model) for model in models)]
    used, degraded = await _used_of(tenant, models, scopes, ledger, now_ms)
    queued = queued_of(tenant.id, uses)
    if queued is not None:
        used[None, "max_queued"] = queued
    return used, degraded


async def _used_of(
    tenant: Tenant,
    models: Sequence[str],
    scopes: Sequence[ScopeLimits],
    ledger: Ledger | None,
    now_ms: int,
) -> tuple[dict[Place, int], list[str]]:
    """Of the first scope, which is of all models, and of one for each of `models`."""
    used: dict[Place, int] = {}
    if ledger is None:
        return used, ["redis"]
    try:
        found = await ledger.observe(tenant.id, scopes, month_now(tenant, now_ms).key)
    except LedgerUnavailable:
        return used, ["redis"]
    for model, use in zip([None, *models], found, strict=True):
        used |= {(model, name): number for name, number in _of_scope(use).items()}
    return used, []


def _of_scope(use: ScopeUse) -> dict[str, int]:
    found = {"max_sequences": use.sequences, "tpm": use.tokens, "rpm": use.requests}
    if use.spent_pico is not None:
        found[BUDGET] = committed_pico(use)
    return found
