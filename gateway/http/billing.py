"""The finance API as one router: what was used, and what is charged for it."""

from collections.abc import Sequence

from litestar import Router
from litestar.di import Provide
from litestar.types import ControllerRouterHandler

from gateway.administration import Administration
from gateway.http.access import check_access
from gateway.http.admin import BODY_BYTES_MAX
from gateway.http.guards import permission_guard
from gateway.http.prices import PlanController, PriceController
from gateway.http.private_answers import PrivateAnswers
from gateway.http.problems import PROBLEM_HANDLERS


def billing_router(
    administration: Administration, *, more: Sequence[ControllerRouterHandler] = ()
) -> Router:
    """`/billing/v1`, guarded by users' tokens and sessions. Errors are problems. `more` are routes
    below it that ask others than the administration. Raises LookupError where a route names no
    permission."""
    router = Router(
        "/billing/v1",
        route_handlers=[PriceController, PlanController, *more],
        dependencies={"administration": Provide(lambda: administration, sync_to_thread=False)},
        guards=[permission_guard(administration)],
        middleware=[PrivateAnswers()],
        exception_handlers=PROBLEM_HANDLERS,
        request_max_body_size=BODY_BYTES_MAX,
    )
    check_access(router.routes)
    return router
