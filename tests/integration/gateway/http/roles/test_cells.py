"""The table of routes and roles is whole, and every cell of it is so."""

import httpx
import pytest
from litestar import Litestar
from litestar.routes import HTTPRoute
from roles_table import API_ROWS, CALLERS, Row
from roles_table_console import CONSOLE_ROWS
from roles_world import RolesWorld

pytestmark = pytest.mark.asyncio(loop_scope="module")

REFUSALS = {"401": 401, "403": 403, "404": 404}


def routes_of(app: Litestar) -> set[tuple[str, str]]:
    """Every route that the application has; OPTIONS, which the framework answers, left out."""
    routes = set()
    for route in app.routes:
        if isinstance(route, HTTPRoute):
            routes |= {(str(m), route.path_format) for m in route.methods if m != "OPTIONS"}
        else:
            routes.add(("POST", route.path))
    return routes


async def test_the_table_has_every_route_and_no_other(world: RolesWorld) -> None:
    """A route that is not in it fails here, and so does a row whose route is gone."""
    in_table = {row.route for row in (*API_ROWS, *CONSOLE_ROWS)}
    routes = routes_of(world.app)
    assert sorted(routes - in_table) == []
    assert sorted(in_table - routes) == []


def said(answer: httpx.Response, row: Row) -> str:
    """The cell that an answer is."""
    to_login = answer.headers.get("location", "").startswith("/console/login")
    if to_login and "out=1" not in answer.headers["location"]:
        return "login"
    if answer.status_code in row.ok:
        return "ok"
    return str(answer.status_code)


@pytest.mark.parametrize("rows", [API_ROWS, CONSOLE_ROWS], ids=["api", "console"])
async def test_every_cell_is_so(world: RolesWorld, rows: tuple[Row, ...]) -> None:
    """B10: each route asked by each caller, of subjects that exist. Every refusal is a problem or,
    below /v1, an error as OpenAI has them."""
    wrong = []
    for row in rows:
        for caller in CALLERS:
            is_page = row.path.startswith("/console")
            headers = world.in_session(caller) if is_page else world.bearer(caller)
            answer = await world.ask(row, headers=headers)
            found, expected = said(answer, row), row.expected[caller]
            if found != expected:
                asked = f"{caller}: {row.method} {row.path}"
                wrong.append(f"{asked}: {expected}, not {found} {answer.text[:200]}")
            elif found in REFUSALS and not is_page:
                body = answer.json()
                assert "error" in body or body["status"] == REFUSALS[found]
    assert not wrong, "\n".join(wrong)


async def test_a_cell_is_one_of_these() -> None:
    """Every row has one of each caller, and somebody whom it lets through or nobody at all."""
    for row in (*API_ROWS, *CONSOLE_ROWS):
        assert set(row.expected.values()) <= {"ok", "login", *REFUSALS}
        assert all(status < 300 or status in (303, 409, 422, 503) for status in row.ok)
