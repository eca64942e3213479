"""Who calls the admin API: looked up, logged in, logged out, and their own password."""

import time
from typing import Any

from litestar import Controller, Request, Response, delete, get, post, put

from gateway.administration.credentials import csrf_of
from gateway.administration.views import View, user_view
from gateway.domain.permissions import Caller, permissions_of
from gateway.errors import Conflict
from gateway.http.access import anyone, signed_in
from gateway.http.admin_bodies import LoginBody, OwnPasswordBody, read_body
from gateway.http.admin_requests import AdminRequest, Verbs, actor_of
from gateway.http.form_fields import OPEN_BYTES_MAX
from gateway.http.guards import check_same_site
from gateway.http.openapi_accounts import CallerAnswer
from gateway.http.openapi_answers import UserAnswer
from gateway.http.openapi_operations import described
from gateway.http.session_cookie import (
    SESSION_COOKIE,
    keeps_to_https,
    no_session_cookie,
    session_cookie,
)


class SessionController(Controller):
    """`/admin/v1/session`."""

    path = "/session"
    tags = ("session",)

    @get(opt=described(CallerAnswer) | signed_in())
    async def show_caller(self, request: AdminRequest) -> View:
        """Who calls, and what they may do."""
        secret = request.cookies.get(SESSION_COOKIE, "")
        return _caller_view(request.auth, secret)

    @post(
        opt=described(CallerAnswer, body=LoginBody) | anyone(),
        request_max_body_size=OPEN_BYTES_MAX,
    )
    async def log_in(
        self, request: Request[Any, Any, Any], administration: Verbs
    ) -> Response[View]:
        """Log in with a password; the session is in a cookie. 401 says the same whether the
        address is unknown, the password wrong, or the account disabled or locked."""
        check_same_site(request)
        body = await read_body(request, LoginBody)
        address = None if request.client is None else request.client.host
        session = await administration.log_in(body.email, body.password, address=address)
        caller = Caller(
            user=session.user, permissions=permissions_of(session.user.role), via="session"
        )
        cookie = session_cookie(session, now_ms=_now_ms(), secure=keeps_to_https(request))
        view = _caller_view(caller, session.secret)
        return Response(view, cookies=[cookie])

    @delete(opt=described() | signed_in())
    async def log_out(self, request: AdminRequest, administration: Verbs) -> Response[None]:
        """End this session."""
        if request.auth.via != "session":
            raise Conflict("a token is no session: it is revoked, not logged out")
        await administration.log_out(request.cookies[SESSION_COOKIE])
        return Response(None, cookies=[no_session_cookie(secure=keeps_to_https(request))])

    @put("/password", opt=described(UserAnswer, body=OwnPasswordBody) | signed_in())
    async def change_password(self, request: AdminRequest, administration: Verbs) -> View:
        """Change one's own password. Ends all of one's sessions, this one included."""
        body = await read_body(request, OwnPasswordBody)
        changed = await administration.change_password(
            actor_of(request), request.user.email, body.current_password, body.password
        )
        return user_view(changed)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _caller_view(caller: Caller, session_secret: str) -> View:
    return {
        "user": user_view(caller.user),
        "permissions": sorted(caller.permissions),
        "via": caller.via,
        "csrf": csrf_of(session_secret) if caller.via == "session" else None,
    }
