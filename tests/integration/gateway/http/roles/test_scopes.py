"""Tokens that were given less than their user's role."""

import pytest
from litestar.routes import HTTPRoute
from roles_table import API_ROWS, UNSAFE, Row
from roles_world import RolesWorld

from gateway.domain.permissions import Permission
from gateway.http.access import ACCESS_OPTION, Access

MAKES_TOKENS = ("POST", "/admin/v1/users/{user_id}/tokens")
pytestmark = pytest.mark.asyncio(loop_scope="module")


def permission_of(world: RolesWorld) -> dict[tuple[str, str], Access]:
    """What each route asks for."""
    found = {}
    for route in world.app.routes:
        if isinstance(route, HTTPRoute):
            for method, (handler, _) in route.route_handler_map.items():
                access = handler.opt.get(ACCESS_OPTION)
                if method != "OPTIONS" and isinstance(access, Access):
                    found[str(method), route.path_format] = access
    return found


def scope_of(row: Row, known: dict[tuple[str, str], Access]) -> Permission | None:
    """The scope that a row's route needs."""
    path = row.path
    if path.startswith("/v1/organization"):
        return Permission.INVOICES_READ if "/costs" in path else Permission.USAGE_READ
    access = known.get(row.route)
    return None if access is None else access.permission


async def test_a_scope_opens_its_routes_and_no_other(world: RolesWorld) -> None:
    """Every route that needs a permission: an admin's token with all scopes but that one is
    refused, one with that alone is not."""
    known = permission_of(world)
    rows = [(row, scope_of(row, known)) for row in API_ROWS]
    needed = {scope for _, scope in rows if scope is not None}
    assert needed == set(Permission)
    only = {each: await world.scoped("admin", each) for each in Permission}
    without = {
        each: await world.scoped("admin", *sorted(set(Permission) - {each})) for each in Permission
    }
    for row, scope in rows:
        if scope is None:
            continue
        refused = await world.ask(row, headers=without[scope])
        assert refused.status_code == 403, (row.path, scope, refused.text)
        assert scope.value in refused.text
        answer = await world.ask(row, headers=only[scope])
        if row.route == MAKES_TOKENS:  # it gets in, and makes none that may more than it may
            assert (answer.status_code, "makes no token without" in answer.text) == (403, True)
            continue
        assert answer.status_code in row.ok, (row.path, scope, answer.text)


async def test_a_scoped_token_changes_no_account(world: RolesWorld) -> None:
    """Nor logs anybody out; it may say whose it is."""
    headers = await world.scoped("admin", Permission.TENANTS_READ)
    for row in API_ROWS:
        if not row.path.startswith("/admin/v1/session") or row.expected["anonymous"] == "ok":
            continue
        answer = await world.ask(row, headers=headers)
        assert answer.status_code == (403 if row.method in UNSAFE else 200)


async def test_a_tenants_token_keeps_to_tenant_and_scopes(world: RolesWorld) -> None:
    """Both hold at once."""
    headers = await world.scoped("tenant_admin", Permission.KEYS_READ)
    get = world.client.get
    assert (await get("/admin/v1/tenants/acme/keys", headers=headers)).status_code == 200
    assert (await get("/admin/v1/tenants/globex/keys", headers=headers)).status_code == 404
    assert (await get("/admin/v1/tenants/acme", headers=headers)).status_code == 403
    assert (await get("/billing/v1/invoices", headers=headers)).status_code == 403
