"""`/admin/v1/live`: what runs now, over all gateways."""

import asyncio

from litestar import get
from litestar.types import ControllerRouterHandler

from gateway.domain.hosted import in_order
from gateway.domain.permissions import Permission
from gateway.domain.pools import pool_of_worker, pools_of
from gateway.domain.scopes import tenant_scope
from gateway.domain.tenant import Tenant
from gateway.domain.worker import WorkerView
from gateway.errors import StoreUnavailable
from gateway.http.access import needs
from gateway.http.openapi_answers import LiveAnswer
from gateway.http.openapi_operations import described
from gateway.serving.condition import Watch
from gateway.serving.hosted import HostedFallback
from gateway.serving.limits_view import use_view
from gateway.serving.month_now import month_now
from gateway.serving.ports import Clock, Directory, Fleet, Ledger, LedgerUnavailable
from gateway.serving.queue_looks import PoolLooks
from gateway.serving.queue_view import (
    Json,
    Uses,
    pool_view,
    queued_of,
    room_view,
    waiting_in,
)

TENANTS_SHOWN_MAX = 1_000
LOOKED_AT_ONCE = 16


def live_handler(
    directory: Directory,
    ledger: Ledger,
    fleet: Fleet,
    watch: Watch,
    fallback: HostedFallback,
    *,
    clock: Clock,
    looks: PoolLooks,
) -> ControllerRouterHandler:
    """The handler; mounted under `/admin/v1`, whose guard it gets."""

    async def tenant_view(tenant: Tenant, uses: Uses) -> Json | None:
        month = month_now(tenant, clock.now_ms())
        try:
            (use,) = await ledger.observe(tenant.id, [tenant_scope(tenant)], month.key)
        except LedgerUnavailable:
            return None
        queued = queued_of(tenant.id, uses)
        return {"id": tenant.id, **use_view(use, month), "sequences_queued": queued}

    @get("/live", opt=described(LiveAnswer) | needs(Permission.LIVE_READ))
    async def live() -> Json:
        """Tenants that may hold something or wait, pools, workers, and what is degraded: with
        `redis:` also each tenant, with `queue:` each pool that could not be looked at."""
        try:
            active = await ledger.active_tenants(TENANTS_SHOWN_MAX)
        except LedgerUnavailable as error:
            raise StoreUnavailable("Redis cannot be reached") from error
        models = (model.id for model in directory.models())
        uses = await looks.look_at(pools_of(models, directory.workers()))
        names = dict.fromkeys([*active, *waiting_in(uses)])
        known = [tenant for tenant in map(directory.tenant, names) if tenant is not None]
        known = known[:TENANTS_SHOWN_MAX]
        views: list[Json | None] = []
        for start in range(0, len(known), LOOKED_AT_ONCE):
            batch = known[start : start + LOOKED_AT_ONCE]
            views += await asyncio.gather(*(tenant_view(tenant, uses) for tenant in batch))
        unseen = [tenant.id for tenant, view in zip(known, views, strict=True) if view is None]
        if known and len(unseen) == len(known):
            raise StoreUnavailable("Redis cannot be reached")
        condition = watch.condition()
        return {
            "tenants": [view for view in views if view is not None],
            "pools": [pool_view(pool, use) for pool, use in uses.items()],
            "workers": [_worker_view(view, uses) for view in fleet.views()],
            "hosted": [
                {
                    "name": provider.name,
                    "enabled": provider.enabled,
                    "models": sorted(provider.models),
                    "circuit": fallback.circuit(provider.id),
                }
                for provider in in_order(directory.hosted_providers())
            ],
            "degraded": [
                *condition.unready,
                *condition.degraded,
                *(f"redis:{tenant_id}" for tenant_id in unseen),
                *(f"queue:{pool}" for pool, use in uses.items() if use is None),
            ],
        }

    return live


def _worker_view(view: WorkerView, uses: Uses) -> Json:
    use = uses.get(pool_of_worker(view.worker))
    rooms = () if use is None else use.rooms
    places = next((room_view(room) for room in rooms if room.id == view.worker.id), None)
    return {
        "id": view.worker.id,
        "model": view.worker.model,
        "engine": view.worker.engine,
        "healthy": view.healthy,
        "draining": view.worker.draining,
        "class": view.worker.request_class,
        "running": view.running,
        "waiting": view.waiting,
        "in_flight": view.in_flight,
        "kv_used_tokens": view.kv_used_tokens,
        "kv_total_tokens": view.kv_total_tokens,
        "load_age_ms": view.load_age_ms,
        "version": view.engine.version,
        "cache_report": view.engine.cache_report,
        "priority_order": view.engine.priority_order,
        "context_tokens": view.engine.context_tokens,
        "places": places,
    }
