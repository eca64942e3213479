"""Users in the console: found, made, changed and kept from locking everybody out."""

import re

import httpx
import pytest
from admin_api import PASSWORD
from console_visitor import ME, Visitor

from gateway.domain.account import Role, User
from gateway.errors import Unauthorized

EMAIL = "ada@weir.local"
OTHER_PASSWORD = "another long password"
NASTY = """<script>alert(1)</script>"'"""
SECRET = re.compile(r'<code id="secret">(wu-[^<]+)</code>')


async def made(visitor: Visitor, role: str = "viewer", tenant_id: str | None = None) -> User:
    """The user EMAIL."""
    return await visitor.administration.create_user(ME, EMAIL, role, PASSWORD, tenant_id=tenant_id)


async def sent(visitor: Visitor, user: User, what: str, **fields: str) -> httpx.Response:
    """The answer to a form of the user's page."""
    await visitor.get(f"/console/users/{user.id}")
    return await visitor.post(f"/console/users/{user.id}/{what}", fields)


async def test_users_are_found_and_paged(visitor: Visitor) -> None:
    """By a part of their address, their role, their tenant; what was typed stays."""
    await visitor.log_in()
    for number in range(3):
        await visitor.administration.create_user(
            ME, f"u{number}@acme.test", "tenant_member", PASSWORD, tenant_id="acme"
        )
    page = (await visitor.get("/console/users")).text
    assert page.index("admin@weir.local") < page.index("u0@acme.test") < page.index("u2@acme.test")
    page = (await visitor.get("/console/users?email=U1")).text
    assert "u1@acme.test" in page
    assert "u0@acme.test" not in page
    assert 'value="U1"' in page
    assert "No user matches" in (await visitor.get("/console/users?tenant_id=nobody")).text
    answer = await visitor.get("/console/users?role=root")
    assert answer.status_code == 422
    assert 'id="f-role-error"' in answer.text


async def test_pages_of_users_follow_each_other(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each user is on one of them."""
    monkeypatch.setattr("gateway.console.users.ROWS", 1)
    await visitor.log_in()
    await made(visitor)
    page = (await visitor.get("/console/users?email=weir.local")).text
    assert f">{EMAIL}</a>" in page
    found = re.search(r'href="([^"]+)" rel="next"', page)
    assert found is not None
    page = (await visitor.get(found[1].replace("&amp;", "&"))).text
    assert ">admin@weir.local</a>" in page
    assert f">{EMAIL}</a>" not in page
    assert 'rel="next"' not in page


async def test_a_user_is_made_and_can_log_in(visitor: Visitor) -> None:
    """What is wrong stands at its field, and the password is never shown again."""
    await visitor.log_in()
    await visitor.get("/console/users/new")
    fields = {"email": EMAIL, "role": "tenant_admin", "tenant_id": "", "password": PASSWORD}
    answer = await visitor.post("/console/users", fields)
    assert answer.status_code == 422
    assert 'id="f-tenant_id-error"' in answer.text
    assert f'value="{EMAIL}"' in answer.text
    assert PASSWORD not in answer.text
    answer = await visitor.post("/console/users", fields | {"tenant_id": "acme"})
    assert answer.status_code == 303
    page = (await visitor.get(answer.headers["location"])).text
    assert "can log in now" in page
    assert "tenant admin of acme" in page
    await visitor.administration.log_in(EMAIL, PASSWORD, address=None)
    answer = await visitor.post("/console/users", fields | {"tenant_id": "acme"})
    assert answer.status_code == 409
    assert "exists already" in answer.text


async def test_a_role_is_changed_and_what_it_ends_is_said_before(visitor: Visitor) -> None:
    """A tenant's role asks for the tenant; a staff's does not mind one that stands there."""
    await visitor.log_in()
    user = await made(visitor)
    await visitor.administration.log_in(EMAIL, PASSWORD, address=None)
    page = (await visitor.get(f"/console/users/{user.id}")).text
    assert "1 session ends; no tokens stay" in page
    answer = await sent(visitor, user, "role", role="tenant_member", tenant_id="")
    assert answer.status_code == 422
    assert 'id="role-f-tenant_id-error"' in answer.text
    answer = await sent(visitor, user, "role", role="tenant_member", tenant_id="acme")
    assert answer.status_code == 303
    changed = await visitor.administration.get_user(user.id)
    assert (changed.role, changed.tenant_id) == (Role.TENANT_MEMBER, "acme")
    assert await visitor.administration.list_sessions(EMAIL) == []
    await sent(visitor, user, "role", role="operator", tenant_id="acme")
    changed = await visitor.administration.get_user(user.id)
    assert (changed.role, changed.tenant_id) == (Role.OPERATOR, None)


async def test_the_last_admin_cannot_lock_everybody_out(visitor: Visitor) -> None:
    """Neither by their role nor by being disabled; nor do they change their own without saying that
    they mean it."""
    await visitor.log_in()
    (own,) = (await visitor.administration.find_users(email="admin@")).items
    answer = await sent(visitor, own, "role", role="viewer")
    assert answer.status_code == 422
    assert 'id="role-f-own-error"' in answer.text
    for what, fields in (("role", {"role": "viewer", "own": "1"}), ("disable", {})):
        answer = await sent(visitor, own, what, **fields)
        assert answer.status_code == 409
        assert "is the last admin who may log in" in answer.text
    assert await visitor.administration.get_user(own.id) == own
    await made(visitor, "admin")
    answer = await sent(visitor, own, "role", role="viewer", own="1")
    assert answer.status_code == 303
    assert (await visitor.administration.get_user(own.id)).role is Role.VIEWER
    assert (await visitor.get("/console/users")).headers["location"].startswith("/console/login")


async def test_who_is_disabled_stays_out_until_enabled(visitor: Visitor) -> None:
    """And the page says what that ends."""
    await visitor.log_in()
    user = await made(visitor)
    token = await visitor.administration.issue_token(ME, EMAIL, "t")
    page = (await visitor.get(f"/console/users/{user.id}")).text
    assert "1 token is refused" in page
    assert (await sent(visitor, user, "disable")).status_code == 303
    assert await visitor.administration.caller_by_token(token) is None
    page = (await visitor.get(f"/console/users/{user.id}")).text
    assert "cannot log in, and tokens are refused" in page
    assert "Disable…" not in page
    assert (await sent(visitor, user, "enable")).status_code == 303
    assert await visitor.administration.caller_by_token(token) is not None


async def test_a_password_is_reset_but_ones_own_is_not(visitor: Visitor) -> None:
    """That needs the current one, on the page of one's account."""
    await visitor.log_in()
    user = await made(visitor)
    answer = await sent(visitor, user, "password", password="short")
    assert answer.status_code == 422
    assert 'id="password-f-password-error"' in answer.text
    assert (await sent(visitor, user, "password", password=OTHER_PASSWORD)).status_code == 303
    with pytest.raises(Unauthorized):
        await visitor.administration.log_in(EMAIL, PASSWORD, address=None)
    await visitor.administration.log_in(EMAIL, OTHER_PASSWORD, address=None)
    (own,) = (await visitor.administration.find_users(email="admin@")).items
    assert (await sent(visitor, own, "password", password=OTHER_PASSWORD)).status_code == 409
    await visitor.administration.log_in("admin@weir.local", PASSWORD, address=None)


async def test_a_token_is_shown_once_and_held_to_its_scopes(visitor: Visitor) -> None:
    """It is in the answer to the form, and on no page after."""
    await visitor.log_in()
    user = await made(visitor, "operator")
    fields = {"name": "report", "expires": "30", "reach": "chosen"}
    answer = await sent(visitor, user, "tokens", **fields)
    assert answer.status_code == 422
    assert 'id="token-f-reach-error"' in answer.text
    answer = await sent(visitor, user, "tokens", **fields, scopes="usage.read")
    found = SECRET.search(answer.text)
    assert found is not None
    caller = await visitor.administration.caller_by_token(found[1])
    assert caller is not None
    assert caller.permissions == {"usage.read"}
    (token,) = await visitor.administration.list_tokens(EMAIL)
    assert token.expires_at_ms is not None
    page = (await visitor.get(f"/console/users/{user.id}")).text
    assert found[1] not in page
    assert "<code>usage.read</code>" in page
    answer = await sent(visitor, user, "tokens", **fields, scopes="usage.read")
    assert (answer.status_code, SECRET.search(answer.text)) == (409, None)
    assert "is not shown again" in answer.text
    assert await visitor.administration.list_tokens(EMAIL) == [token]
    answer = await sent(visitor, user, "tokens", name="x", expires="7", reach="all")
    assert answer.status_code == 422
    assert (await sent(visitor, user, "tokens/report/revoke")).status_code == 303
    assert await visitor.administration.caller_by_token(found[1]) is None


async def test_ones_own_token_is_not_made_here(visitor: Visitor) -> None:
    """It needs one's password, on the page of one's account; here there is no form of it."""
    await visitor.log_in()
    user = await made(visitor)
    (own,) = (await visitor.administration.find_users(email="admin@")).items
    fields = {"name": "mine", "expires": "30", "reach": "all"}
    answer = await sent(visitor, own, "tokens", **fields)
    assert answer.status_code == 409
    assert "/console/account" in answer.text
    assert await visitor.administration.list_tokens(own.email) == []
    assert "Make the token" not in (await visitor.get(f"/console/users/{own.id}")).text
    assert "Make the token" in (await visitor.get(f"/console/users/{user.id}")).text


async def test_sessions_are_ended_one_or_all(visitor: Visitor) -> None:
    """And not those of somebody else."""
    await visitor.log_in()
    user = await made(visitor)
    for _ in range(3):
        await visitor.administration.log_in(EMAIL, PASSWORD, address="10.1.2.3")
    page = (await visitor.get(f"/console/users/{user.id}")).text
    assert page.count("10.1.2.3") == 3
    first, *_ = await visitor.administration.list_sessions(EMAIL)
    assert (await sent(visitor, user, f"sessions/{first.id}/end")).status_code == 303
    assert len(await visitor.administration.list_sessions(EMAIL)) == 2
    (own,) = await visitor.administration.list_sessions("admin@weir.local")
    assert (await sent(visitor, user, f"sessions/{own.id}/end")).status_code == 404
    await sent(visitor, user, "sessions/end")
    assert "2 sessions have ended" in (await visitor.get(f"/console/users/{user.id}")).text


async def test_who_may_only_look_sees_no_controls(visitor: Visitor) -> None:
    """And a script's name is text on every page of users."""
    await visitor.log_in(Role.VIEWER)
    user = await made(visitor)
    await visitor.administration.issue_token(ME, EMAIL, NASTY.replace("/", "|"))
    for path in ("/console/users", f"/console/users/{user.id}", f"/console/users?email={NASTY}"):
        page = (await visitor.get(path)).text
        assert "<script>alert" not in page
        for control in ("Add a user", "Disable…", "Revoke…", "New token", "Change the role"):
            assert control not in page
    assert (await visitor.get("/console/users/user_nobody")).status_code == 404


async def test_a_form_that_a_token_sends_makes_none_with_more(visitor: Visitor) -> None:
    """As on the API: it is not what it is sent to that says what it may make."""
    await visitor.log_in()
    user = await made(visitor, "admin")
    held = await visitor.administration.issue_token(ME, EMAIL, "t", scopes=["users.write"])
    bearer = f"Bearer {held}"
    fields: dict[str, str | list[str]] = {"name": "more", "expires": "90"}
    for reach in ({"reach": "all"}, {"reach": "chosen", "scopes": "audit.read"}):
        path = f"/console/users/{user.id}/tokens"
        answer = await visitor.client.post(
            path, data=fields | reach, headers={"authorization": bearer}
        )
        assert answer.status_code == 403, reach
    assert [each.name for each in await visitor.administration.list_tokens(EMAIL)] == ["t"]
