"""`/admin/v1/live`: what runs now, over all gateways."""

from litestar import get
from litestar.types import ControllerRouterHandler

from gateway.domain.hosted import in_order
from gateway.domain.scopes import tenant_scope
from gateway.domain.tenant import Tenant
from gateway.domain.worker import WorkerView
from gateway.errors import StoreUnavailable
from gateway.http.openapi_answers import LiveAnswer
from gateway.http.openapi_operations import described
from gateway.serving.condition import Watch
from gateway.serving.hosted import HostedFallback
from gateway.serving.limits_view import Json, use_view
from gateway.serving.month_now import month_now
from gateway.serving.ports import Clock, Directory, Fleet, Ledger, LedgerUnavailable

TENANTS_SHOWN_MAX = 1_000


def live_handler(
    directory: Directory,
    ledger: Ledger,
    fleet: Fleet,
    watch: Watch,
    fallback: HostedFallback,
    *,
    clock: Clock,
) -> ControllerRouterHandler:
    """The handler; mounted under `/admin/v1`, whose guard it gets."""

    async def tenant_view(tenant: Tenant) -> Json:
        month = month_now(tenant, clock.now_ms())
        (use,) = await ledger.observe(tenant.id, [tenant_scope(tenant)], month.name)
        return {"id": tenant.id, **use_view(use, month), "sequences_queued": 0}

    @get("/live", opt=described(LiveAnswer))
    async def live() -> Json:
        """Tenants that may hold something, pools, workers, and what is degraded."""
        try:
            active = await ledger.active_tenants(TENANTS_SHOWN_MAX)
            tenants = [directory.tenant(name) for name in active]
            views = [await tenant_view(tenant) for tenant in tenants if tenant is not None]
        except LedgerUnavailable as error:
            raise StoreUnavailable("Redis cannot be reached") from error
        condition = watch.condition()
        return {
            "tenants": views,
            "pools": [_pool_view(model.id) for model in directory.models()],
            "workers": [_worker_view(view) for view in fleet.views()],
            "hosted": [
                {
                    "name": provider.name,
                    "enabled": provider.enabled,
                    "models": sorted(provider.models),
                    "circuit": fallback.circuit(provider.id),
                }
                for provider in in_order(directory.hosted_providers())
            ],
            "degraded": [*condition.unready, *condition.degraded],
        }

    return live


def _pool_view(model: str) -> Json:
    return {"model": model, "queued_tokens": {"interactive": 0, "batch": 0}}


def _worker_view(view: WorkerView) -> Json:
    return {
        "id": view.worker.id,
        "model": view.worker.model,
        "engine": view.worker.engine,
        "healthy": view.healthy,
        "draining": view.worker.draining,
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
    }
