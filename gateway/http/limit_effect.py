"""`POST /admin/v1/tenants/{id}/limits/effect`: what limits would do before they are saved."""

from typing import Any

from litestar import post
from litestar.params import FromPath
from litestar.types import ControllerRouterHandler

from gateway.domain.permissions import Permission
from gateway.domain.tenant import TenantLimits
from gateway.http.access import needs
from gateway.http.admin_bodies import read_body
from gateway.http.admin_requests import AdminRequest, Verbs
from gateway.http.openapi_limit_effect import LimitsEffectAnswer
from gateway.http.openapi_operations import described
from gateway.serving.limit_effect_now import effect_now
from gateway.serving.live_view import LiveView
from gateway.serving.queue_view import Json


def limit_effect_handler(live: LiveView) -> ControllerRouterHandler:
    """The handler; mounted under `/admin/v1`, whose guard it gets. What runs is looked at through
    the parts of the live view."""

    @post(
        "/tenants/{tenant_id:str}/limits/effect",
        status_code=200,
        opt=described(LimitsEffectAnswer, body=TenantLimits) | needs(Permission.TENANTS_READ),
        tags=["tenants"],
    )
    async def show_limits_effect(
        request: AdminRequest, administration: Verbs, tenant_id: FromPath[str]
    ) -> Json:
        """What these limits would do, the body as for PUT: each limit now, then, what is used of it
        and whether it would bind at once; what all tenants are promised against what the workers
        can hold. Saves nothing. What PUT would refuse is refused."""
        fields = await read_body(request, dict[str, Any])
        return await effect_now(await administration.preview_tenant_limits(tenant_id, fields), live)

    return show_limits_effect
