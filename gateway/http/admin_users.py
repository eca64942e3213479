"""Users and their tokens on the admin API."""

from litestar import Controller, delete, get, patch, post
from litestar.params import FromPath, FromQuery

from gateway.administration.views import View, page_view, user_view
from gateway.domain.permissions import Permission
from gateway.http.access import needs
from gateway.http.admin_bodies import (
    TokenBody,
    UserBody,
    UserChanges,
    instant_ms,
    read_body,
    unless_absent,
)
from gateway.http.admin_requests import AdminRequest, Verbs, actor_of
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
            actor_of(request), body.email, body.role, body.password
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
        """Change the role, or whether all of the user's tokens are refused."""
        body = await read_body(request, UserChanges)
        user = await administration.get_user(user_id)
        updated = await administration.update_user(
            actor_of(request),
            user.email,
            role=unless_absent(body.role),
            disabled=unless_absent(body.disabled),
        )
        return user_view(updated)

    @post(
        "/{user_id:str}/tokens",
        opt=described(NewTokenAnswer, body=TokenBody) | needs(Permission.USERS_WRITE),
    )
    async def issue_token(
        self, request: AdminRequest, administration: Verbs, user_id: FromPath[str]
    ) -> View:
        """Give the user a token, which is in this answer and nowhere else."""
        body = await read_body(request, TokenBody)
        user = await administration.get_user(user_id)
        token = await administration.issue_token(
            actor_of(request),
            user.email,
            body.name,
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
