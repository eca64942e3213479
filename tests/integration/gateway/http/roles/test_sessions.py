"""A browser's session on the APIs: its own pages change things, and nobody else."""

import pytest
from roles_table import API_ROWS, UNSAFE, Row
from roles_world import RolesWorld

from gateway.administration.credentials import csrf_of

pytestmark = pytest.mark.asyncio(loop_scope="module")


def unsafe_rows() -> list[Row]:
    """Every route that changes something and that an admin may call."""
    return [
        row
        for row in API_ROWS
        if row.method in UNSAFE
        and row.path.startswith(("/admin/", "/billing/"))
        and row.expected["anonymous"] == "401"
    ]


async def test_without_its_csrf_token_a_session_changes_nothing(world: RolesWorld) -> None:
    """403 on every route that is not safe: with none, with another session's, from another site,
    with another site's origin. Then with its own it is answered."""
    good = world.in_session("admin")
    bare = {name: value for name, value in good.items() if name != "x-csrf-token"}
    others = csrf_of(world.sessions["viewer"])
    for row in unsafe_rows():
        for headers, code in (
            (bare, "csrf"),
            ({**bare, "x-csrf-token": ""}, "csrf"),
            ({**bare, "x-csrf-token": others}, "csrf"),
            ({**good, "origin": "http://evil.test"}, "cross_site"),
            ({**good, "origin": "null"}, "cross_site"),
            ({**good, "sec-fetch-site": "cross-site"}, "cross_site"),
        ):
            answer = await world.ask(row, headers=headers)
            found = answer.status_code, answer.json().get("code")
            assert found == (403, code), (row.method, row.path, found)
        if row.path.startswith("/admin/v1/session"):
            continue  # this would end the session
        answer = await world.ask(row, headers=good)
        assert answer.status_code in row.ok, (row.method, row.path, answer.text)


async def test_in_a_session_roles_hold_as_with_a_token(world: RolesWorld) -> None:
    """Every cell of what is read, and of what a tenant's people may write."""
    for row in API_ROWS:
        if not row.path.startswith(("/admin/", "/billing/")) or row.path == "/admin/v1/session":
            continue
        callers = ["viewer", "tenant_member", "tenant_admin", "other_admin"]
        for caller in callers if row.method == "GET" else callers[2:]:
            answer = await world.ask(row, headers=world.in_session(caller))
            expected = row.expected[caller]
            right = row.ok if expected == "ok" else (int(expected),)
            assert answer.status_code in right, (row.method, row.path, caller, answer.text)


async def test_a_wrong_token_is_not_helped_by_a_session(world: RolesWorld) -> None:
    """Who sends a token means it."""
    headers = {**world.in_session("admin"), "authorization": "Bearer wu-nobody"}
    assert (await world.client.get("/admin/v1/tenants", headers=headers)).status_code == 401


async def test_v1_knows_no_sessions(world: RolesWorld) -> None:
    """Below /v1 a cookie is nothing."""
    answer = await world.client.get(
        "/v1/organization/costs?start_time=1767225600", headers=world.in_session("admin")
    )
    assert answer.status_code == 401
