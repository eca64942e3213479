"""The admin API as one router, to be mounted by the application."""

from collections.abc import Sequence

from litestar import Router
from litestar.di import Provide
from litestar.types import ControllerRouterHandler

from gateway.administration import Administration
from gateway.errors import NotFound
from gateway.http.access import Own, check_access, owned_by
from gateway.http.admin_audit import AuditController, AuditFileController
from gateway.http.admin_bulk import BulkController
from gateway.http.admin_fleet import ModelController, WorkerController
from gateway.http.admin_hosted import HostedController
from gateway.http.admin_keys import KeyController
from gateway.http.admin_session import SessionController
from gateway.http.admin_tenants import TenantController
from gateway.http.admin_users import UserController
from gateway.http.guards import permission_guard
from gateway.http.private_answers import PrivateAnswers
from gateway.http.problems import PROBLEM_HANDLERS

BODY_BYTES_MAX = 1024 * 1024


def admin_router(
    administration: Administration, *, more: Sequence[ControllerRouterHandler] = ()
) -> Router:
    """`/admin/v1`, guarded by users' tokens and sessions; `more` are handlers that belong below it
    too.

    Errors are problems. Where no route is found it is the application that answers: give it
    `problem_response` for paths outside `/v1`. Raises LookupError where a route names no
    permission.
    """

    async def tenant_of_key(key_id: str) -> str | None:
        try:
            return (await administration.get_key(key_id)).tenant_id
        except NotFound:
            return None

    router = Router(
        "/admin/v1",
        route_handlers=[
            TenantController,
            KeyController,
            ModelController,
            WorkerController,
            HostedController,
            UserController,
            SessionController,
            AuditController,
            AuditFileController,
            BulkController,
            *more,
        ],
        dependencies={"administration": Provide(lambda: administration, sync_to_thread=False)},
        guards=[permission_guard(administration)],
        opt=owned_by({Own.KEY: tenant_of_key}),
        middleware=[PrivateAnswers()],
        exception_handlers=PROBLEM_HANDLERS,
        request_max_body_size=BODY_BYTES_MAX,
    )
    check_access(router.routes)
    return router
