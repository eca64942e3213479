"""The cookie that holds a session: for this server alone, and out of reach of scripts."""

from typing import Any

from litestar.connection import ASGIConnection
from litestar.datastructures import Cookie

from gateway.domain.account import Session

SESSION_COOKIE = "weir_session"
SECURE_STATE = "secure_cookies"
"""The application's state of that name says that browsers come by https, whatever comes here."""


def keeps_to_https(connection: ASGIConnection[Any, Any, Any, Any]) -> bool:
    """Whether the cookie is to be kept to https: the request came by it, or the operator says that
    a proxy before this gateway ends it."""
    if connection.scope.get("scheme") == "https":
        return True
    return bool(connection.app.state.get(SECURE_STATE, False))


def session_cookie(session: Session, *, now_ms: int, secure: bool) -> Cookie:
    """The cookie of a session that was just begun; the browser forgets it when the session ends at
    the latest. `secure` keeps it to https."""
    max_age_s = max(0, (session.expires_at_ms - now_ms) // 1000)
    return _cookie(session.secret, max_age_s=max_age_s, secure=secure)


def no_session_cookie(*, secure: bool) -> Cookie:
    """The cookie that makes a browser forget its session."""
    return _cookie("", max_age_s=0, secure=secure)


def _cookie(value: str, *, max_age_s: int, secure: bool) -> Cookie:
    return Cookie(
        SESSION_COOKIE,
        value=value,
        path="/",
        max_age=max_age_s,
        httponly=True,
        samesite="lax",
        secure=secure,
    )
