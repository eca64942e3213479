"""Accounts over HTTP: logging in and out, one's own password, and what admins do with others'."""

from typing import Any

import httpx
import pytest
from admin_api import PASSWORD, AdminApi

from gateway.domain.account import Role
from gateway.domain.permissions import PERMISSIONS_OF
from gateway.http.form_fields import OPEN_BYTES_MAX

EMAIL = "ada@weir.local"
OTHER_PASSWORD = "another long password"
NOBODY: dict[str, str] = {}


async def made(api: AdminApi, role: str = "viewer", **more: object) -> dict[str, Any]:
    """A user EMAIL, made over the API."""
    body = {"email": EMAIL, "role": role, "password": PASSWORD, **more}
    user: dict[str, Any] = await api.json("POST", "/users", body)
    return user


async def log_in(
    api: AdminApi, password: str = PASSWORD, headers: dict[str, str] | None = None
) -> httpx.Response:
    """An attempt of EMAIL's; no cookie is kept."""
    body = {"email": EMAIL, "password": password}
    answer = await api.call("POST", "/session", body, headers=headers or NOBODY)
    api.client.cookies.clear()
    return answer


def in_session(answer: httpx.Response, *, csrf: bool = True) -> dict[str, str]:
    """The headers of a later request of the session that an answer began."""
    headers = {"cookie": f"weir_session={answer.cookies['weir_session']}"}
    return headers | {"x-csrf-token": answer.json()["csrf"]} if csrf else headers


async def test_a_session_is_begun_used_and_ended(api: AdminApi) -> None:
    """In a cookie that no script reads; a change needs what no other site knows."""
    await made(api)
    begun = await log_in(api)
    assert begun.status_code == 201, begun.text
    assert begun.headers["cache-control"] == "private, no-store"
    cookie = begun.headers["set-cookie"].lower()
    assert all(word in cookie for word in ("httponly", "samesite=lax", "path=/", "max-age=86"))
    assert "secure" not in cookie
    assert begun.cookies["weir_session"] not in begun.text
    shown = begun.json()
    assert (shown["user"]["email"], shown["via"]) == (EMAIL, "session")
    assert shown["permissions"] == sorted(PERMISSIONS_OF[Role.VIEWER])
    who = await api.call("GET", "/session", headers=in_session(begun, csrf=False))
    assert (who.status_code, who.json()["csrf"]) == (200, shown["csrf"])
    bare = await api.call("DELETE", "/session", headers=in_session(begun, csrf=False))
    assert (bare.status_code, bare.json()["code"]) == (403, "csrf")
    ended = await api.call("DELETE", "/session", headers=in_session(begun))
    assert ended.status_code == 204
    assert "max-age=0" in ended.headers["set-cookie"].lower()
    api.client.cookies.clear()
    over = await api.call("GET", "/session", headers=in_session(begun))
    assert over.status_code == 401


async def test_a_token_says_who_it_is_and_has_no_session_to_end(api: AdminApi) -> None:
    """It needs no CSRF token, so there is none."""
    who = await api.call("GET", "/session", role=Role.FINANCE)
    shown = who.json()
    assert (shown["user"]["role"], shown["via"], shown["csrf"]) == ("finance", "token", None)
    assert (await api.call("DELETE", "/session", role=Role.FINANCE)).status_code == 409
    assert (await api.call("GET", "/session", headers=NOBODY)).status_code == 401


async def test_the_cookie_is_kept_to_https_where_browsers_come_by_it(api: AdminApi) -> None:
    """As the request says itself."""
    await made(api)
    answer = await api.client.post(
        "https://weir.test/admin/v1/session", json={"email": EMAIL, "password": PASSWORD}
    )
    assert "secure" in answer.headers["set-cookie"].lower()


async def test_refusals_of_a_log_in_are_one(api: AdminApi) -> None:
    """401, byte by byte, for a wrong password, nobody's, one disabled and one locked."""
    user = await made(api)
    answers = [await log_in(api, "a wrong password") for _ in range(10)]
    answers.append(await log_in(api))
    body = {"email": "nobody@weir.local", "password": PASSWORD}
    answers.append(await api.call("POST", "/session", body, headers=NOBODY))
    await api.json("PATCH", f"/users/{user['id']}", {"disabled": True})
    answers.append(await log_in(api))
    assert {answer.status_code for answer in answers} == {401}
    assert len({answer.content for answer in answers}) == 1
    assert not any("set-cookie" in answer.headers for answer in answers)
    assert (await api.json("GET", f"/users/{user['id']}"))["locked_until"] is not None


@pytest.mark.parametrize(
    "headers", [{"sec-fetch-site": "cross-site"}, {"origin": "https://evil.example"}]
)
async def test_another_site_logs_nobody_in(api: AdminApi, headers: dict[str, str]) -> None:
    """Who is logged in without knowing it leaves their work in another's account."""
    await made(api)
    answer = await log_in(api, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (403, "cross_site")


async def test_no_more_is_read_of_who_has_not_logged_in(api: AdminApi) -> None:
    """413, before anything is looked up."""
    password = "x" * OPEN_BYTES_MAX
    answer = await log_in(api, password)
    assert (answer.status_code, answer.json()["code"]) == (413, "request_entity_too_large")


async def test_ones_own_password_needs_the_current_one(api: AdminApi) -> None:
    """It ends this session too; an admin's own is changed in the same way."""
    await made(api)
    begun = await log_in(api)
    body = {"current_password": "a wrong password", "password": OTHER_PASSWORD}
    wrong = await api.call("PUT", "/session/password", body, headers=in_session(begun))
    assert (wrong.status_code, wrong.json()["param"]) == (422, "current_password")
    body["current_password"] = PASSWORD
    right = await api.call("PUT", "/session/password", body, headers=in_session(begun))
    assert right.status_code == 200, right.text
    assert (await api.call("GET", "/session", headers=in_session(begun))).status_code == 401
    assert (await log_in(api)).status_code == 401
    assert (await log_in(api, OTHER_PASSWORD)).status_code == 201
    admin = (await api.json("GET", "/session"))["user"]["id"]
    own = await api.call("PUT", f"/users/{admin}/password", {"password": OTHER_PASSWORD})
    assert own.status_code == 409


async def test_an_admin_resets_a_password_and_ends_sessions(api: AdminApi) -> None:
    """One, or all; what is listed has no secret."""
    user = await made(api)
    path = f"/users/{user['id']}"
    begun = [await log_in(api), await log_in(api), await log_in(api)]
    listed = await api.call("GET", f"{path}/sessions")
    ids = [session["id"] for session in listed.json()["items"]]
    assert len(ids) == 3
    assert not any(each.cookies["weir_session"] in listed.text for each in begun)
    assert (await api.call("DELETE", f"{path}/sessions/{ids[0]}")).status_code == 204
    assert (await api.call("DELETE", f"{path}/sessions/{ids[0]}")).status_code == 404
    assert (await api.json("DELETE", f"{path}/sessions")) == {"ended": 2}
    again = await log_in(api)
    await api.json("PUT", f"{path}/password", {"password": OTHER_PASSWORD})
    assert (await api.call("GET", "/session", headers=in_session(again))).status_code == 401
    assert (await log_in(api, OTHER_PASSWORD)).status_code == 201


async def test_tokens_are_held_to_scopes_and_listed(api: AdminApi) -> None:
    """A scope that the role lacks is refused; the secret is shown once."""
    user = await made(api, "operator")
    path = f"/users/{user['id']}/tokens"
    for scopes in (["prices.write"], ["nothing"], []):
        refused = await api.call("POST", path, {"name": "t", "scopes": scopes})
        assert (refused.status_code, refused.json()["param"]) == (422, "scopes")
    scopes = ["fleet.read", "fleet.drain", "fleet.read"]
    token = (await api.json("POST", path, {"name": "drain", "scopes": scopes}))["token"]
    await api.json("POST", path, {"name": "all"})
    listed = await api.call("GET", path)
    assert [(each["name"], each["scopes"]) for each in listed.json()["items"]] == [
        ("all", None),
        ("drain", ["fleet.drain", "fleet.read"]),
    ]
    assert token not in listed.text
    bearer = {"authorization": f"Bearer {token}"}
    who = (await api.call("GET", "/session", headers=bearer)).json()
    assert who["permissions"] == ["fleet.drain", "fleet.read"]
    assert (await api.call("GET", "/workers", headers=bearer)).status_code == 200
    assert (await api.call("GET", "/tenants", headers=bearer)).status_code == 403
    used = (await api.json("GET", path))["items"]
    assert [each["last_used_at"] is not None for each in used] == [False, True]


async def test_a_session_gives_no_token_to_whoever_it_is_of(api: AdminApi) -> None:
    """409, which says where; another is given one, and who calls by a token may give more."""
    admin, other = await made(api, "admin"), (await api.json("GET", "/session"))["user"]
    session = in_session(await log_in(api))
    own = f"/users/{admin['id']}/tokens"
    refused = await api.call("POST", own, {"name": "t"}, headers=session)
    assert refused.status_code == 409
    assert "/console/account" in refused.json()["detail"]
    assert (await api.json("GET", own))["items"] == []
    given = await api.call("POST", f"/users/{other['id']}/tokens", {"name": "t"}, headers=session)
    assert given.status_code == 201, given.text
    token = (await api.json("POST", own, {"name": "t"}))["token"]
    bearer = {"authorization": f"Bearer {token}"}
    assert (await api.call("POST", own, {"name": "u"}, headers=bearer)).status_code == 201


async def test_a_token_makes_none_with_more_than_it_has(api: AdminApi) -> None:
    """403, for its own user as for others: neither other scopes nor a token without, whichever
    role it would be held to."""
    me, other = (await api.json("GET", "/session"))["user"], await made(api)
    scopes = ["users.read", "users.write"]
    body = {"name": "held", "scopes": scopes}
    token = (await api.json("POST", f"/users/{me['id']}/tokens", body))["token"]
    bearer = {"authorization": f"Bearer {token}"}
    for user in (me, other):
        path = f"/users/{user['id']}/tokens"
        for more in (None, ["tenants.read"], ["users.read", "audit.read"]):
            asked = {"name": "more", "scopes": more}
            refused = await api.call("POST", path, asked, headers=bearer)
            assert refused.status_code == 403, more
            assert "the token has" in refused.json()["detail"]
        assert "more" not in [each["name"] for each in (await api.json("GET", path))["items"]]
        asked = {"name": "less", "scopes": ["users.read"]}
        assert (await api.call("POST", path, asked, headers=bearer)).status_code == 201


async def test_a_role_of_a_tenant_has_one(api: AdminApi) -> None:
    """One that exists; and whoever leaves the role leaves the tenant."""
    body = {"email": EMAIL, "role": "tenant_admin", "password": PASSWORD}
    for tenant, role in ((None, "tenant_admin"), ("nobody", "tenant_admin"), ("acme", "viewer")):
        asked = body | {"role": role, "tenant_id": tenant}
        refused = await api.call("POST", "/users", asked)
        assert (refused.status_code, refused.json()["param"]) == (422, "tenant_id"), tenant
    user = await made(api, "tenant_admin", tenant_id="acme")
    assert (user["role"], user["tenant_id"]) == ("tenant_admin", "acme")
    path = f"/users/{user['id']}"
    unnamed = await api.call("PATCH", path, {"tenant_id": None})
    assert (unnamed.status_code, unnamed.json()["param"]) == (422, "tenant_id")
    member = await api.json("PATCH", path, {"role": "tenant_member"})
    assert (member["role"], member["tenant_id"]) == ("tenant_member", "acme")
    left = await api.json("PATCH", path, {"role": "viewer"})
    assert (left["role"], left["tenant_id"]) == ("viewer", None)
    assert (await api.call("PATCH", path, {"tenant_id": "acme"})).status_code == 422
