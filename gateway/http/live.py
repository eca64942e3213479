"""`/admin/v1/live`: what runs now, over all gateways."""

from litestar import get
from litestar.types import ControllerRouterHandler

from gateway.domain.permissions import Permission
from gateway.http.access import needs
from gateway.http.openapi_live import LiveAnswer
from gateway.http.openapi_operations import described
from gateway.serving.live_view import LiveView
from gateway.serving.queue_view import Json


def live_handler(view: LiveView) -> ControllerRouterHandler:
    """The handler; mounted under `/admin/v1`, whose guard it gets."""

    @get("/live", opt=described(LiveAnswer) | needs(Permission.LIVE_READ))
    async def live() -> Json:
        """Tenants that may hold something or wait, pools, workers, latencies against their targets,
        hosted providers in use, and what is degraded: with `redis:` also each tenant, with `queue:`
        each pool that could not be looked at."""
        return await view.look_now()

    return live
