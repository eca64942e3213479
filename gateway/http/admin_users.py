"""Users, their tokens and their sessions on the admin API."""

from collections.abc import Collection

from litestar import Controller, delete, get, patch, post, put
from litestar.params import FromPath, FromQuery

from gateway.administration.views import View, page_view, session_view, token_view, user_view
from gateway.domain.account import User
from gateway.domain.permissions import PERMISSIONS_OF, Caller, Permission
from gateway.errors import Conflict, Forbidden
from gateway.http.access import needs
from gateway.http.admin_bodies import (
    PasswordBody,
    TokenBody,
    UserBody,
    UserChanges,
    instant_ms,
    read_body,
    unless_absent,
)
from gateway.http.admin_requests import AdminRequest, Verbs, actor_of
from gateway.http.openapi_accounts import EndedAnswer, SessionsAnswer, TokensAnswer
from gateway.http.openapi_answers import NewTokenAnswer, Page, UserAnswer
from gateway.http.openapi_operations import described


class UserController(Controller):
    """`/admin/v1/users`."""

    path = "/users"
    tags = ("users",)

    @get(opt=described(Page[UserAnswer]) | needs(Permission.USERS_READ))
    async def list_users(
        self,
        administration: Verbs,
        limit: FromQuery[int] = 100,
        cursor: FromQuery[str | None] = None,
    ) -> View:
        """Users by id."""
        page = await administration.list_users(limit, cursor)
        return page_view(page, [user_view(user) for user in page.items])

    @post(opt=described(UserAnswer, body=UserBody) | needs(Permission.USERS_WRITE))
    async def create_user(self, request: AdminRequest, administration: Verbs) -> View:
        """Create a user."""
        body = await read_body(request, UserBody)
        user = await administration.create_user(
            actor_of(request), body.email, body.role, body.password, tenant_id=body.tenant_id
        )
        return user_view(user)

    @get("/{user_id:str}", opt=described(UserAnswer) | needs(Permission.USERS_READ))
    async def get_user(self, administration: Verbs, user_id: FromPath[str]) -> View:
        """One user."""
        return user_view(await administration.get_user(user_id))

    @patch(
        "/{user_id:str}",
        opt=described(UserAnswer, body=UserChanges) | needs(Permission.USERS_WRITE),
    )
    async def update_user(
        self, request: AdminRequest, administration: Verbs, user_id: FromPath[str]
    ) -> View:
        """Change the role, the tenant, or whether the user may come in at all. Ends their
        sessions."""
        body = await read_body(request, UserChanges)
        user = await administration.get_user(user_id)
        updated = await administration.update_user(
            actor_of(request),
            user.email,
            role=unless_absent(body.role),
            tenant_id=body.tenant_id,
            disabled=unless_absent(body.disabled),
        )
        return user_view(updated)

    @put(
        "/{user_id:str}/password",
        opt=described(UserAnswer, body=PasswordBody) | needs(Permission.USERS_WRITE),
    )
    async def set_password(
        self, request: AdminRequest, administration: Verbs, user_id: FromPath[str]
    ) -> View:
        """Give another user a new password. Ends their sessions and unlocks them. One's own is
        changed at `/session/password`."""
        body = await read_body(request, PasswordBody)
        check_not_own(request.user, user_id)
        user = await administration.get_user(user_id)
        changed = await administration.set_password(actor_of(request), user.email, body.password)
        return user_view(changed)

    @get("/{user_id:str}/sessions", opt=described(SessionsAnswer) | needs(Permission.USERS_READ))
    async def list_sessions(self, administration: Verbs, user_id: FromPath[str]) -> View:
        """The user's live sessions, the latest first."""
        user = await administration.get_user(user_id)
        sessions = await administration.list_sessions(user.email)
        return {"items": [session_view(session) for session in sessions]}

    @delete(
        "/{user_id:str}/sessions",
        status_code=200,
        opt=described(EndedAnswer) | needs(Permission.USERS_WRITE),
    )
    async def end_sessions(
        self, request: AdminRequest, administration: Verbs, user_id: FromPath[str]
    ) -> View:
        """End all of the user's sessions."""
        user = await administration.get_user(user_id)
        return {"ended": await administration.log_out_everywhere(actor_of(request), user.email)}

    @delete(
        "/{user_id:str}/sessions/{session_id:str}",
        opt=described() | needs(Permission.USERS_WRITE),
    )
    async def end_session(
        self,
        request: AdminRequest,
        administration: Verbs,
        user_id: FromPath[str],
        session_id: FromPath[str],
    ) -> None:
        """End that session of the user's."""
        user = await administration.get_user(user_id)
        await administration.end_session(actor_of(request), user.email, session_id)

    @get("/{user_id:str}/tokens", opt=described(TokensAnswer) | needs(Permission.USERS_READ))
    async def list_tokens(self, administration: Verbs, user_id: FromPath[str]) -> View:
        """The user's live tokens by name, without their secrets."""
        user = await administration.get_user(user_id)
        tokens = await administration.list_tokens(user.email)
        return {"items": [token_view(token) for token in tokens]}

    @post(
        "/{user_id:str}/tokens",
        opt=described(NewTokenAnswer, body=TokenBody) | needs(Permission.USERS_WRITE),
    )
    async def issue_token(
        self, request: AdminRequest, administration: Verbs, user_id: FromPath[str]
    ) -> View:
        """Give the user a token, which is in this answer and nowhere else. In a session nobody
        gives one to themselves here: 409. A token that has scopes gives none with more: 403."""
        body = await read_body(request, TokenBody)
        if request.auth.via == "session":
            check_not_own_token(request.user, user_id)
        check_no_more(request.auth, body.scopes)
        user = await administration.get_user(user_id)
        token = await administration.issue_token(
            actor_of(request),
            user.email,
            body.name,
            scopes=body.scopes,
            expires_at_ms=instant_ms(body.expires_at, field="expires_at"),
        )
        return {"user_id": user.id, "name": body.name.strip(), "token": token}

    @delete("/{user_id:str}/tokens/{name:str}", opt=described() | needs(Permission.USERS_WRITE))
    async def revoke_token(
        self,
        request: AdminRequest,
        administration: Verbs,
        user_id: FromPath[str],
        name: FromPath[str],
    ) -> None:
        """Refuse that token from now on."""
        user = await administration.get_user(user_id)
        await administration.revoke_token(actor_of(request), user.email, name)


def check_not_own(caller: User, user_id: str) -> None:
    """That it is another's password. Raises Conflict: one's own needs the current one."""
    if user_id == caller.id:
        raise Conflict("one's own password is changed at /admin/v1/session/password")


def check_not_own_token(caller: User, user_id: str) -> None:
    """That a session makes a token for another. Raises Conflict: one of one's own would outlast the
    session, so that it needs the password, whoever has got hold of the session."""
    if user_id == caller.id:
        raise Conflict("a token of one's own needs one's password: it is made at /console/account")


def check_no_more(caller: Caller, scopes: Collection[str] | None) -> None:
    """That a token which has scopes makes none with more, nor one without. Raises Forbidden."""
    if caller.permissions == PERMISSIONS_OF[caller.user.role]:
        return
    if scopes is None:
        raise Forbidden("the token has scopes, and makes no token without")
    more = sorted(set(scopes) - caller.permissions)
    if more:
        raise Forbidden(f"the token has not the scopes {', '.join(more)}, and gives none of them")
