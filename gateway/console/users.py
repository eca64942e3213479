"""Users: who they are, their roles, sessions and tokens."""

from litestar import get, post
from litestar.params import FromPath
from msgspec import UNSET

from gateway.administration.views import View, session_view, token_view, user_view
from gateway.console.access import page
from gateway.console.account_words import (
    EXPIRIES,
    REACHES,
    empty_token_form,
    refused_token,
    role_choices,
    role_name,
    scopes_of,
    wanted_token,
)
from gateway.console.forms import REFUSALS, Form
from gateway.console.lists import ROWS, given, paging
from gateway.console.visit import Answer, Here, Visit
from gateway.domain.account import TENANT_ROLES, Role, User
from gateway.domain.permissions import Permission
from gateway.errors import Unprocessable
from gateway.http.admin_users import check_no_more, check_not_own, check_not_own_token

PATH = "/console/users"
_FILTERS = ("email", "role", "tenant_id")


@get("/users", opt=page(Permission.USERS_READ))
async def list_users(visit: Here) -> Answer:
    """Users by address."""
    form = visit.query()
    wanted = given(form, _FILTERS)
    users, next_cursor, status = [], None, 200
    try:
        found = await visit.parts.administration.find_users(ROWS, form.optional("cursor"), **wanted)
        users, next_cursor = [_row(visit, user) for user in found.items], found.next_cursor
    except Unprocessable as error:
        form.refused(error)
        status = 422
    return visit.show(
        "users/list.html",
        status=status,
        form=form,
        users=users,
        wanted=wanted,
        roles=[("", "any role"), *((role.value, role_name(role)) for role in Role)],
        **paging(PATH, form, next_cursor, wanted),
    )


@get("/users/new", opt=page(Permission.USERS_WRITE))
async def show_new_user(visit: Here) -> Answer:
    """The form to make one."""
    query = visit.query()
    role = "tenant_admin" if query.text("tenant_id") else "viewer"
    filled = {"email": "", "role": role, "tenant_id": query.text("tenant_id")}
    return _new_page(visit, Form.filled(filled))


@post("/users", opt=page(Permission.USERS_WRITE))
async def create_user(visit: Here) -> Answer:
    """Make a user, who can log in from then on."""
    form = await visit.form()
    password = form.secret("password")
    try:
        user = await visit.parts.administration.create_user(
            visit.actor,
            form.text("email"),
            form.text("role"),
            password,
            tenant_id=form.optional("tenant_id"),
        )
    except REFUSALS as error:
        return _new_page(visit, form.refused(error), status=error.status)
    said = f"{user.email} can log in now. Tell them the password in a way that only they can read."
    return visit.go(_path(user.id), said=said)


@get("/users/{user_id:str}", opt=page(Permission.USERS_READ))
async def show_user(visit: Here, user_id: FromPath[str]) -> Answer:
    """One user."""
    return await _user_page(visit, await visit.parts.administration.get_user(user_id))


@post("/users/{user_id:str}/role", opt=page(Permission.USERS_WRITE))
async def change_role(visit: Here, user_id: FromPath[str]) -> Answer:
    """Give them another role. Whoever changes their own says that they mean it."""
    form = await visit.form()
    user = await visit.parts.administration.get_user(user_id)
    role, tenant_id = form.text("role"), form.optional("tenant_id")
    if user.id == visit.user.id and not form.flag("own"):
        form.errors["own"] = "Tick this where you mean to change your own role."
        return await _user_page(visit, user, role_form=form, status=422)
    try:
        after = await visit.parts.administration.update_user(
            visit.actor,
            user.email,
            role=role,
            tenant_id=tenant_id if role in TENANT_ROLES and tenant_id else UNSET,
        )
    except REFUSALS as error:
        refused = form.refused(error)
        return await _user_page(visit, user, role_form=refused, status=error.status)
    held = f" of {after.tenant_id}" if after.tenant_id else ""
    said = f"{after.email} is {role_name(after.role)}{held} from now on, and logs in anew."
    return visit.go(_path(user.id), said=said)


@post("/users/{user_id:str}/disable", opt=page(Permission.USERS_WRITE))
async def disable_user(visit: Here, user_id: FromPath[str]) -> Answer:
    """Let them in no more."""
    user = await visit.parts.administration.get_user(user_id)
    try:
        await visit.parts.administration.update_user(visit.actor, user.email, disabled=True)
    except REFUSALS as error:
        refused = Form().refused(error)
        return await _user_page(visit, user, state_form=refused, status=error.status)
    said = f"{user.email} is disabled: logged out everywhere, and their tokens are refused."
    return visit.go(_path(user.id), said=said)


@post("/users/{user_id:str}/enable", opt=page(Permission.USERS_WRITE))
async def enable_user(visit: Here, user_id: FromPath[str]) -> Answer:
    """Let them in again."""
    user = await visit.parts.administration.get_user(user_id)
    await visit.parts.administration.update_user(visit.actor, user.email, disabled=False)
    return visit.go(_path(user.id), said=f"{user.email} can log in again, and their tokens work.")


@post("/users/{user_id:str}/password", opt=page(Permission.USERS_WRITE))
async def reset_password(visit: Here, user_id: FromPath[str]) -> Answer:
    """Give another user a new password."""
    form = await visit.form()
    check_not_own(visit.user, user_id)
    user = await visit.parts.administration.get_user(user_id)
    try:
        await visit.parts.administration.set_password(
            visit.actor, user.email, form.secret("password")
        )
    except REFUSALS as error:
        refused = form.refused(error)
        return await _user_page(visit, user, password_form=refused, status=error.status)
    said = f"{user.email} has the new password, is not locked, and logs in anew. Tokens stay."
    return visit.go(_path(user.id), said=said)


@post("/users/{user_id:str}/sessions/end", opt=page(Permission.USERS_WRITE))
async def end_sessions(visit: Here, user_id: FromPath[str]) -> Answer:
    """Log them out everywhere."""
    user = await visit.parts.administration.get_user(user_id)
    ended = await visit.parts.administration.log_out_everywhere(visit.actor, user.email)
    many = "1 session has ended" if ended == 1 else f"{ended} sessions have ended"
    return visit.go(_path(user.id), said=f"{many} of {user.email}.")


@post("/users/{user_id:str}/sessions/{session_id:str}/end", opt=page(Permission.USERS_WRITE))
async def end_session(visit: Here, user_id: FromPath[str], session_id: FromPath[str]) -> Answer:
    """End one session of theirs."""
    user = await visit.parts.administration.get_user(user_id)
    await visit.parts.administration.end_session(visit.actor, user.email, session_id)
    return visit.go(_path(user.id), said=f"That session of {user.email} has ended.")


@post("/users/{user_id:str}/tokens", opt=page(Permission.USERS_WRITE))
async def issue_token(visit: Here, user_id: FromPath[str]) -> Answer:
    """Give another user a token, which the answer alone shows."""
    form = await visit.form()
    check_not_own_token(visit.user, user_id)
    user = await visit.parts.administration.get_user(user_id)
    try:
        wanted = wanted_token(form, now_ms=visit.now_ms)
        check_no_more(visit.request.auth, wanted.scopes)
        secret = await visit.parts.administration.issue_token(
            visit.actor,
            user.email,
            wanted.name,
            scopes=wanted.scopes,
            expires_at_ms=wanted.expires_at_ms,
        )
    except REFUSALS as error:
        refused = refused_token(form, error)
        return await _user_page(visit, user, token_form=refused, status=error.status)
    return await _user_page(visit, user, secret=(wanted.name, secret))


@post("/users/{user_id:str}/tokens/{name:str}/revoke", opt=page(Permission.USERS_WRITE))
async def revoke_token(visit: Here, user_id: FromPath[str], name: FromPath[str]) -> Answer:
    """Refuse a token of theirs."""
    user = await visit.parts.administration.get_user(user_id)
    await visit.parts.administration.revoke_token(visit.actor, user.email, name)
    return visit.go(
        _path(user.id), said=f"The token {name} of {user.email} is refused from now on."
    )


def _new_page(visit: Visit, form: Form, *, status: int = 200) -> Answer:
    return visit.show("users/new.html", status=status, form=form, roles=role_choices())


async def _user_page(
    visit: Visit,
    user: User,
    *,
    status: int = 200,
    role_form: Form | None = None,
    state_form: Form | None = None,
    password_form: Form | None = None,
    token_form: Form | None = None,
    secret: tuple[str, str] | None = None,
) -> Answer:
    administration = visit.parts.administration
    sessions = await administration.list_sessions(user.email)
    tokens = await administration.list_tokens(user.email)
    standing = {"role": user.role.value, "tenant_id": user.tenant_id, "own": None}
    return visit.show(
        "users/user.html",
        status=status,
        user=_row(visit, user),
        is_own=user.id == visit.user.id,
        sessions=[session_view(session) for session in sessions],
        tokens=[token_view(token) for token in tokens],
        roles=role_choices(),
        role_form=role_form or Form.filled(standing),
        state_form=state_form or Form(),
        password_form=password_form or Form(),
        token_form=token_form or empty_token_form(),
        scopes=scopes_of(user.role),
        expiries=EXPIRIES,
        reaches=REACHES,
        secret=secret,
    )


def _row(visit: Visit, user: User) -> View:
    until_ms = user.locked_until_ms
    is_locked = until_ms is not None and until_ms > visit.now_ms
    return {**user_view(user), "is_locked": is_locked}


def _path(user_id: str) -> str:
    return f"{PATH}/{user_id}"


PAGES = (
    list_users,
    show_new_user,
    create_user,
    show_user,
    change_role,
    disable_user,
    enable_user,
    reset_password,
    end_sessions,
    end_session,
    issue_token,
    revoke_token,
)
