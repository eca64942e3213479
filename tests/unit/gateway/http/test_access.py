"""A route says who may call it, or it is not mounted."""

from typing import Any

import pytest
from litestar import Litestar, Router, get

from gateway.administration import Administration
from gateway.domain.permissions import Permission
from gateway.http.access import Own, anyone, check_access, needs, owned_by, signed_in
from gateway.http.admin import admin_router
from gateway.http.billing import billing_router
from gateway.http.openapi_operations import described


def a_route(path: str, options: dict[str, Any]) -> Any:
    """A handler with that `opt`."""

    @get(path, opt=options)
    async def handler() -> None:
        """Nothing."""

    return handler


async def nobody(_named: str) -> str | None:
    """Whose a subject is."""
    return None


@pytest.mark.parametrize("mounted", [admin_router, billing_router])
def test_a_route_without_a_permission_is_not_mounted(mounted: Any) -> None:
    """Also where it is in a router of its own; the message names its path."""
    bare = a_route("/forgotten", described())
    for more in (bare, Router("/deeper", route_handlers=[bare])):
        with pytest.raises(LookupError, match="/forgotten names no permission"):
            mounted(Administration(None), more=[more])  # type: ignore[arg-type]  # never asked
    for options in (needs(Permission.LIVE_READ), signed_in(), anyone()):
        mounted(Administration(None), more=[a_route("/said", described() | options)])  # type: ignore[arg-type]


def test_a_route_whose_owner_nobody_knows_is_not_mounted() -> None:
    """Said by its router or one above it, it is."""
    options = needs(Permission.USAGE_READ, own=Own.INVOICE)
    with pytest.raises(LookupError, match="invoice_id"):
        check_access(Router("/", route_handlers=[a_route("/{invoice_id:str}", options)]).routes)
    inner = Router("/in", route_handlers=[a_route("/{invoice_id:str}", options)])
    outer = Router("/out", route_handlers=[inner], opt=owned_by({Own.INVOICE: nobody}))
    check_access(outer.routes)
    app = Litestar([outer], openapi_config=None)
    check_access(app.routes)


def test_a_list_and_a_tenant_need_no_owner() -> None:
    """Whose those are is in the question."""
    for own in (Own.LIST, Own.TENANT):
        options = needs(Permission.USAGE_READ, own=own)
        check_access(Router("/", route_handlers=[a_route("/x", options)]).routes)
