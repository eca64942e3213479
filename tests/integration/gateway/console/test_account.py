"""One's own account in the console."""

import re

import pytest
from admin_api import PASSWORD
from console_visitor import ME, Visitor

from gateway.domain.account import Role
from gateway.errors import Unauthorized

EMAIL = "tenant_member@weir.local"
OTHER_PASSWORD = "another long password"
SECRET = re.compile(r'<code id="secret">(wu-[^<]+)</code>')
PATH = "/console/account"


async def logged_in(visitor: Visitor) -> None:
    """As a member of `acme`, on the page of their account."""
    await visitor.log_in(Role.TENANT_MEMBER, tenant_id="acme")
    await visitor.get(PATH)


async def test_the_page_says_who_one_is(visitor: Visitor) -> None:
    """Of a tenant's people too: which tenant."""
    await logged_in(visitor)
    assert EMAIL in visitor.page
    assert "tenant member of acme" in visitor.page
    assert "You have none." in visitor.page


async def test_a_password_is_changed_by_who_knows_it(visitor: Visitor) -> None:
    """What is wrong is said at its field and no password is shown; then one logs in anew."""
    await logged_in(visitor)
    fields = {"current_password": PASSWORD, "password": OTHER_PASSWORD, "again": OTHER_PASSWORD}
    for wrong, field in (
        ({"current_password": "a wrong password"}, "current_password"),
        ({"again": "not the same"}, "again"),
        ({"password": "short", "again": "short"}, "password"),
    ):
        answer = await visitor.post(f"{PATH}/password", fields | wrong)
        assert answer.status_code == 422
        assert f'id="f-{field}-error"' in answer.text
        assert PASSWORD not in answer.text
        assert OTHER_PASSWORD not in answer.text
    answer = await visitor.post(f"{PATH}/password", fields)
    assert (answer.status_code, answer.headers["location"]) == (303, "/console/login?changed=1")
    assert "Your password is changed" in (await visitor.get("/console/login?changed=1")).text
    assert "/console/login" in (await visitor.get(PATH)).headers["location"]
    with pytest.raises(Unauthorized):
        await visitor.administration.log_in(EMAIL, PASSWORD, address=None)
    await visitor.administration.log_in(EMAIL, OTHER_PASSWORD, address=None)


async def test_this_session_is_marked_and_the_others_end(visitor: Visitor) -> None:
    """One of them, or all; this one stays."""
    await logged_in(visitor)
    (this,) = await visitor.administration.list_sessions(EMAIL)
    for _ in range(3):
        await visitor.administration.log_in(EMAIL, PASSWORD, address="10.9.8.7")
    page = (await visitor.get(PATH)).text
    row = page[page.index(f'id="session-{this.id}"') :]
    assert "this one" in row[: row.index("</tr>")]
    assert page.count("this one") == 1
    other = next(
        each for each in await visitor.administration.list_sessions(EMAIL) if each.id != this.id
    )
    assert (await visitor.post(f"{PATH}/sessions/{other.id}/end")).status_code == 303
    assert len(await visitor.administration.list_sessions(EMAIL)) == 3
    await visitor.post(f"{PATH}/sessions/end")
    page = (await visitor.get(PATH)).text
    assert "2 other sessions have ended." in page
    assert [each.id for each in await visitor.administration.list_sessions(EMAIL)] == [this.id]


async def test_a_token_of_ones_own_needs_the_password(visitor: Visitor) -> None:
    """It outlasts the session. It is shown once, and can do no more than its owner."""
    await logged_in(visitor)
    fields = {"name": "mine", "expires": "", "reach": "all", "current_password": "a wrong one"}
    answer = await visitor.post(f"{PATH}/tokens", fields)
    assert answer.status_code == 422
    assert 'id="token-f-current_password-error"' in answer.text
    assert await visitor.administration.list_tokens(EMAIL) == []
    fields["current_password"] = PASSWORD
    more = fields | {"reach": "chosen", "scopes": "users.write"}
    assert (await visitor.post(f"{PATH}/tokens", more)).status_code == 422
    answer = await visitor.post(f"{PATH}/tokens", fields)
    found = SECRET.search(answer.text)
    assert found is not None
    caller = await visitor.administration.caller_by_token(found[1])
    assert caller is not None
    assert caller.user.email == EMAIL
    assert found[1] not in (await visitor.get(PATH)).text
    answer = await visitor.post(f"{PATH}/tokens", fields)
    assert (answer.status_code, SECRET.search(answer.text)) == (409, None)
    assert "is not shown again" in answer.text
    assert (await visitor.post(f"{PATH}/tokens/mine/revoke")).status_code == 303
    assert await visitor.administration.caller_by_token(found[1]) is None


async def test_what_is_anothers_is_not_to_be_had(visitor: Visitor) -> None:
    """Neither their sessions nor their tokens."""
    await visitor.administration.create_user(ME, "b@weir.local", "viewer", PASSWORD)
    await visitor.administration.log_in("b@weir.local", PASSWORD, address=None)
    token = await visitor.administration.issue_token(ME, "b@weir.local", "theirs")
    (session,) = await visitor.administration.list_sessions("b@weir.local")
    await logged_in(visitor)
    assert (await visitor.post(f"{PATH}/sessions/{session.id}/end")).status_code == 404
    assert (await visitor.post(f"{PATH}/tokens/theirs/revoke")).status_code == 404
    assert await visitor.administration.list_sessions("b@weir.local") == [session]
    assert await visitor.administration.caller_by_token(token) is not None
