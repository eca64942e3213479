"""How a tenant stands now, for its own people: its limits and what is used of them, of each model
and key that is narrowed too, and its own place in the queues. Nothing of anybody else is in it.

However many of a tenant's people look, a gateway looks once a second.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from billing.domain.money import show_amount
from gateway.domain.pools import pools_of
from gateway.domain.scopes import ScopeLimits, ScopeUse, model_scope, scopes_of, tenant_scope
from gateway.domain.tenant import ApiKey, Limits, ModelLimits, Tenant, waiting_of
from gateway.serving.limit_headers import committed_pico
from gateway.serving.limits_view import observed, own_view
from gateway.serving.live_view import LiveView
from gateway.serving.month_now import MonthNow, month_now
from gateway.serving.ports import LedgerUnavailable, MonthRebuild
from gateway.serving.queue_view import Json, own_queue

SCOPES_ASKED_MAX = 200
"""Of more that are narrowed the limits are told, and no use."""
_UNKNOWN = (
    "sequences_running",
    "tokens_last_minute",
    "requests_last_minute",
    "reset_ms",
    "committed_this_month",
    "budget_permille",
)


@dataclass(frozen=True)
class _Place:
    """One scope that is looked at, and whose limits it has."""

    scope: ScopeLimits
    limits: Limits | ModelLimits
    key: ApiKey | None = None
    model: str | None = None


async def own_now(
    tenant: Tenant, keys: Sequence[ApiKey], live: LiveView, months: MonthRebuild | None = None
) -> Json:
    """`tenant` and what of it is `narrowed` with use, `queue` by model; as it was within the last
    second, of the same tenant and keys. What a store does not tell is null, and `is_known` says
    whether use is known; of `keys` only those are shown that are narrowed."""
    return await live.own_looks.look(
        tenant.id,
        (tenant, tuple(keys)),
        live.clock.monotonic_us,
        lambda: _looked(tenant, keys, live, months),
    )


async def _looked(
    tenant: Tenant, keys: Sequence[ApiKey], live: LiveView, months: MonthRebuild | None
) -> Json:
    now_ms = live.clock.now_ms()
    month = month_now(tenant, now_ms)
    places = [
        _Place(tenant_scope(tenant), tenant.limits),
        *_of_models(tenant),
        *(place for key in keys for place in _of_key(tenant, key)),
    ]
    uses: list[ScopeUse | None] = [None] * len(places)
    with suppress(LedgerUnavailable):
        scopes = [place.scope for place in places[:SCOPES_ASKED_MAX]]
        uses[: len(scopes)] = await observed(live.ledger, tenant.id, scopes, month, months)
    views = [_view(place, use, month) for place, use in zip(places, uses, strict=True)]
    models = [model.id for model in live.directory.models()]
    pools = await live.looks.look_at(pools_of(models, live.directory.workers()))
    queue = own_queue(tenant.id, tenant.limits.weight, pools, now_ms=now_ms)
    bounds = waiting_of(tenant.limits)
    waiting = {
        "max_queued": bounds.max_queued,
        "max_wait_ms": bounds.max_wait_ms,
        "queued": queue["queued"],
    }
    return {
        "is_known": uses[0] is not None,
        "tenant": {**views[0], **waiting},
        "narrowed": views[1:],
        "queue": queue["models"],
    }


def is_narrowed(limits: Limits | ModelLimits) -> bool:
    """Whether any limit is set of those by which a model or a key may be narrower than all."""
    return any(getattr(limits, name) is not None for name in ModelLimits.__struct_fields__)


def _of_models(tenant: Tenant) -> list[_Place]:
    return [
        _Place(model_scope(tenant, model), limits, model=model)
        for model, limits in sorted(tenant.limits.models.items())
        if is_narrowed(limits)
    ]


def _of_key(tenant: Tenant, key: ApiKey) -> list[_Place]:
    of_models = [
        _Place(scopes_of(tenant, key, model)[3], limits, key, model)
        for model, limits in sorted(key.limits.models.items())
        if is_narrowed(limits)
    ]
    if not is_narrowed(key.limits):
        return of_models
    return [_Place(scopes_of(tenant, key, "")[1], key.limits, key), *of_models]


def _view(place: _Place, use: ScopeUse | None, month: MonthNow) -> Json:
    """Limits and use of one scope; where the store is away the limits as they are stored."""
    limits, key = place.limits, place.key
    found: Json = {
        "key_id": None if key is None else key.id,
        "key_name": None if key is None else key.name,
        "model": place.model,
    }
    if use is not None:
        return {**found, **own_view(limits, use, month), **_committed(use, month)}
    unknown = own_view(limits, ScopeUse(place.scope, 0, 0, 0, 0), month)
    return {**found, **unknown, **dict.fromkeys(_UNKNOWN)}


def _committed(use: ScopeUse, month: MonthNow) -> Json:
    """What of a budget is spent or held back: as an amount, and of the whole up to 1000 ‰."""
    budget = use.limits.budget_pico
    if use.spent_pico is None:
        return dict.fromkeys(("committed_this_month", "budget_permille"))
    committed = committed_pico(use)
    permille = None
    if budget is not None:
        permille = min(1000, committed * 1000 // budget) if budget else 1000
    return {
        "committed_this_month": show_amount(committed, month.currency),
        "budget_permille": permille,
    }
