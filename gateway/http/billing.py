"""The finance API as one router: what is charged. For admins and finance, and for nobody else."""

from collections.abc import Sequence

from litestar import Router
from litestar.di import Provide
from litestar.types import ControllerRouterHandler

from gateway.administration import Administration
from gateway.domain.account import Role
from gateway.http.admin import BODY_BYTES_MAX
from gateway.http.guards import role_guard
from gateway.http.prices import PlanController, PriceController
from gateway.http.problems import PROBLEM_HANDLERS

ROLES = frozenset({Role.ADMIN, Role.FINANCE})


def billing_router(
    administration: Administration, *, more: Sequence[ControllerRouterHandler] = ()
) -> Router:
    """`/billing/v1`, guarded by users' tokens. Errors are problems. `more` are routes below it that
    ask others than the administration."""
    return Router(
        "/billing/v1",
        route_handlers=[PriceController, PlanController, *more],
        dependencies={"administration": Provide(lambda: administration, sync_to_thread=False)},
        guards=[role_guard(administration, readers=ROLES, writers=ROLES)],
        exception_handlers=PROBLEM_HANDLERS,
        request_max_body_size=BODY_BYTES_MAX,
    )
