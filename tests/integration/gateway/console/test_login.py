"""Logging in, being led back, the end of a session, and forms of other sites."""

import httpx
import pytest
from admin_api import PASSWORD
from console_visitor import ME, OWN, Visitor

from gateway.console.login import REFUSED
from gateway.domain.account import Role
from gateway.http.session_cookie import SESSION_COOKIE

OLD_FORM = "This form is too old or comes from another page: open the page again."


async def test_whoever_is_not_logged_in_is_led_there_and_back(visitor: Visitor) -> None:
    """With what the page was asked."""
    answer = await visitor.get("/console/workers?x=1")
    assert answer.status_code == 303
    assert answer.headers["location"] == "/console/login?next=/console/workers%3Fx%3D1"
    page = await visitor.get(answer.headers["location"])
    assert 'name="next" value="/console/workers?x=1"' in page.text
    await visitor.administration.create_user(ME, "a@weir.local", Role.ADMIN, PASSWORD)
    fields = {"email": "A@weir.local", "password": PASSWORD, "next": "/console/workers?x=1"}
    answer = await visitor.post("/console/login", fields)
    assert (answer.status_code, answer.headers["location"]) == (303, "/console/workers?x=1")
    cookie = answer.headers["set-cookie"].lower()
    assert cookie.startswith(SESSION_COOKIE)
    assert "httponly" in cookie
    assert "samesite=lax" in cookie


async def test_over_https_the_session_stays_there(visitor: Visitor) -> None:
    """The cookie is never sent in the clear."""
    await visitor.administration.create_user(ME, "a@weir.local", Role.ADMIN, PASSWORD)
    fields = {"email": "a@weir.local", "password": PASSWORD}
    for scheme, is_secure in (("https", True), ("http", False)):
        address = f"{scheme}://weir.test/console/login"
        answer = await visitor.client.post(address, data=fields, headers=OWN)
        assert ("secure" in answer.headers["set-cookie"].lower()) == is_secure


async def test_no_log_in_leads_to_another_site(visitor: Visitor) -> None:
    """But to the console."""
    await visitor.administration.create_user(ME, "a@weir.local", Role.ADMIN, PASSWORD)
    fields = {"email": "a@weir.local", "password": PASSWORD, "next": "//evil.test/console"}
    answer = await visitor.post("/console/login", fields)
    assert answer.headers["location"] == "/console"


async def test_what_was_wrong_is_not_told(visitor: Visitor) -> None:
    """The page is the same for a wrong password and for an address that nobody has; the address
    that was typed stays, the password does not."""
    await visitor.administration.create_user(ME, "a@weir.local", Role.ADMIN, PASSWORD)
    pages = []
    for email in ("a@weir.local", "b@weir.local"):
        fields = {"email": email, "password": "not this one", "next": ""}
        answer = await visitor.post("/console/login", fields)
        assert answer.status_code == 401
        assert f'value="{email}"' in answer.text
        assert REFUSED in answer.text
        assert "not this one" not in answer.text
        pages.append(answer.text.replace(email, ""))
    assert pages[0] == pages[1]


async def test_a_log_in_from_another_site_is_refused(visitor: Visitor) -> None:
    """Nobody is logged in by a form that is not ours."""
    await visitor.administration.create_user(ME, "a@weir.local", Role.ADMIN, PASSWORD)
    fields = {"email": "a@weir.local", "password": PASSWORD}
    for headers in (
        {"origin": "http://evil.test"},
        {"origin": "//["},
        {"sec-fetch-site": "cross-site"},
    ):
        answer = await visitor.post("/console/login", fields, **headers)
        assert answer.status_code == 403
        assert OLD_FORM in answer.text
        assert "set-cookie" not in answer.headers


async def test_a_form_needs_the_token_of_its_session(visitor: Visitor) -> None:
    """None, and another's, change nothing."""
    await visitor.log_in()
    for fields in ({}, {"csrf": "x" * 43}):
        answer = await visitor.client.post("/console/workers/w/drain", data=fields, headers=OWN)
        assert answer.status_code == 403
        assert 'aria-label="Console"' in answer.text
        assert OLD_FORM in answer.text
        assert "Ask an administrator" not in answer.text
    assert not (await visitor.administration.get_worker("w")).draining
    answer = await visitor.post("/console/workers/w/drain", origin="http://evil.test")
    assert answer.status_code == 403


async def test_an_ended_session_leads_to_the_log_in_and_says_so(visitor: Visitor) -> None:
    """A page is redirected; a part of a page makes the browser leave it, for where it was."""
    await visitor.log_in()
    await visitor.administration.log_out_everywhere(ME, "admin@weir.local")
    answer = await visitor.get("/console/workers")
    assert answer.headers["location"] == "/console/login?ended=1&next=/console/workers"
    assert "Your session has ended" in (await visitor.get(answer.headers["location"])).text
    part = await visitor.client.get(
        "/console/workers/now",
        headers={"hx-request": "true", "hx-current-url": "http://weir.test/console/workers?a=1"},
    )
    assert part.status_code == 401
    assert part.headers["hx-redirect"] == ("/console/login?ended=1&next=/console/workers%3Fa%3D1")


@pytest.mark.parametrize("address", ["//[", "/console/tenants/z\u00fcrich", "http://[/console"])
async def test_what_is_no_address_leads_to_the_log_in_alone(visitor: Visitor, address: str) -> None:
    """Wherever a browser, or what is none, says it: never an error of ours."""
    for name in (b"hx-current-url", b"referer"):
        headers = httpx.Headers([(b"hx-request", b"true"), (name, address.encode())])
        part = await visitor.client.get("/console/workers/now", headers=headers)
        assert (part.status_code, part.headers["hx-redirect"]) == (401, "/console/login?ended=1")
    page = await visitor.client.get("/console/login", params={"next": address})
    assert page.status_code == 200
    await visitor.administration.create_user(ME, "a@weir.local", Role.ADMIN, PASSWORD)
    fields = {"email": "a@weir.local", "password": PASSWORD, "next": address}
    answer = await visitor.post("/console/login", fields)
    assert (answer.status_code, answer.headers["location"]) == (303, "/console")


async def test_what_a_page_takes_may_be_asked(visitor: Visitor) -> None:
    """By whoever asks: it says methods, and nothing of what is there."""
    for path in ("/console/workers", "/console/login", "/console/tenants/acme/limits"):
        answer = await visitor.client.options(path)
        assert answer.status_code == 204, path
        assert "GET" in answer.headers["allow"]


async def test_logging_out_ends_the_session(visitor: Visitor) -> None:
    """Not only in the browser."""
    await visitor.log_in()
    secret = visitor.client.cookies[SESSION_COOKIE]
    answer = await visitor.post("/console/logout")
    assert answer.headers["location"] == "/console/login?out=1"
    assert SESSION_COOKIE not in visitor.client.cookies
    assert await visitor.administration.caller_by_session(secret) is None


async def test_whoever_is_logged_in_is_not_asked_again(visitor: Visitor) -> None:
    """The log-in page leads on."""
    await visitor.log_in(Role.VIEWER)
    answer = await visitor.get("/console/login?next=/console/workers")
    assert (answer.status_code, answer.headers["location"]) == (303, "/console/workers")


async def test_a_token_opens_no_page(visitor: Visitor) -> None:
    """Pages are for browsers: a cookie, or the log-in."""
    await visitor.administration.create_user(ME, "a@weir.local", Role.ADMIN, PASSWORD)
    token = await visitor.administration.issue_token(ME, "a@weir.local", "t")
    answer = await visitor.get("/console/workers", authorization=f"Bearer {token}")
    assert answer.status_code == 303
