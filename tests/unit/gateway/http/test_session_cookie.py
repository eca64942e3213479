"""The cookie of a session."""

import pytest
from litestar import Litestar
from litestar.datastructures import State
from litestar.testing import RequestFactory

from gateway.domain.account import Role, Session, User
from gateway.http.session_cookie import (
    SECURE_STATE,
    keeps_to_https,
    no_session_cookie,
    session_cookie,
)

USER = User(id="user_1", email="a@b.c", role=Role.VIEWER, created_at_ms=0)


@pytest.mark.parametrize("secure", [True, False])
def test_no_script_and_no_other_site_has_it(secure: bool) -> None:
    """It lasts as long as the session may, and is forgotten at once where it is ended."""
    session = Session(secret="ws-secret", user=USER, expires_at_ms=90_000)
    cookie = session_cookie(session, now_ms=30_000, secure=secure).to_header(header="")
    for word in ("weir_session=ws-secret", "HttpOnly", "Path=/", "SameSite=lax", "Max-Age=60"):
        assert word in cookie
    assert ("Secure" in cookie) is secure
    ended = no_session_cookie(secure=secure).to_header(header="")
    assert "Max-Age=0" in ended
    assert "ws-secret" not in ended


@pytest.mark.parametrize(
    ("scheme", "state", "expected"),
    [
        ("http", {}, False),
        ("https", {}, True),
        ("http", {SECURE_STATE: True}, True),
        ("http", {SECURE_STATE: False}, False),
        ("https", {SECURE_STATE: False}, True),
    ],
)
def test_it_is_kept_to_https_where_browsers_come_by_it(
    scheme: str, state: dict[str, bool], expected: bool
) -> None:
    """By what the request says, or the operator."""
    app = Litestar([], state=State(state))
    request = RequestFactory(app=app, scheme=scheme).get("/")
    assert keeps_to_https(request) is expected
