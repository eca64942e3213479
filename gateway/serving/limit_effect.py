"""What a change of a tenant's limits would do, from what the stores know now. Saves nothing."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass

import msgspec

from gateway.domain.limit_effect import BUDGET, Place, Promised, capacity_of, effects
from gateway.domain.scopes import ScopeUse, model_scope, tenant_scope
from gateway.domain.tenant import Tenant, TenantLimits
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
    month = month_now(tenant, now_ms)
    models = sorted({*change.now.models, *change.then.models})
    scopes = [tenant_scope(tenant), *(model_scope(tenant, model) for model in models)]
    used: dict[Place, int] = {}
    queued = queued_of(tenant.id, uses)
    if queued is not None:
        used[None, "max_queued"] = queued
    if ledger is None:
        return used, ["redis"]
    try:
        found = await ledger.observe(tenant.id, scopes, month.key)
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
