"""Whoever is logged in: their password, sessions and tokens."""

from litestar import get, post
from litestar.params import FromPath

from gateway.administration.views import session_view, token_view, user_view
from gateway.console.access import personal_page
from gateway.console.account_words import (
    EXPIRIES,
    REACHES,
    ROLES,
    empty_token_form,
    refused_token,
    role_name,
    scopes_of,
    wanted_token,
)
from gateway.console.forms import REFUSALS, Form
from gateway.console.guard import LOGIN_PATH
from gateway.console.visit import Answer, Here, Visit
from gateway.http.session_cookie import no_session_cookie

PATH = "/console/account"


@get("/account", opt=personal_page())
async def show_account(visit: Here) -> Answer:
    """The page of one's own account."""
    return await _account_page(visit)


@post("/account/password", opt=personal_page())
async def change_password(visit: Here) -> Answer:
    """Change one's own password. All of one's sessions end, this one too."""
    form = await visit.form()
    password = form.secret("password")
    if password != form.secret("again"):
        form.errors["again"] = "is not the same as the new password"
        return await _account_page(visit, password_form=form, status=422)
    try:
        await visit.parts.administration.change_password(
            visit.actor, visit.user.email, form.secret("current_password"), password
        )
    except REFUSALS as error:
        return await _account_page(visit, password_form=form.refused(error), status=error.status)
    return visit.go(f"{LOGIN_PATH}?changed=1", also=no_session_cookie(secure=visit.secure))


@post("/account/sessions/end", opt=personal_page())
async def end_other_sessions(visit: Here) -> Answer:
    """End all of one's sessions but this one."""
    ended = await visit.parts.administration.log_out_everywhere(
        visit.actor, visit.user.email, keep=visit.session_secret
    )
    many = "1 other session has ended" if ended == 1 else f"{ended} other sessions have ended"
    return visit.go(PATH, said=f"{many}.")


@post("/account/sessions/{session_id:str}/end", opt=personal_page())
async def end_own_session(visit: Here, session_id: FromPath[str]) -> Answer:
    """End one of one's sessions."""
    await visit.parts.administration.end_session(visit.actor, visit.user.email, session_id)
    return visit.go(PATH, said="That session has ended.")


@post("/account/tokens", opt=personal_page())
async def issue_own_token(visit: Here) -> Answer:
    """Give oneself a token, which the answer alone shows. It outlasts the session, so that it needs
    the password."""
    form = await visit.form()
    try:
        wanted = wanted_token(form, now_ms=visit.now_ms)
        administration, email = visit.parts.administration, visit.user.email
        await administration.confirm_password(email, form.secret("current_password"))
        secret = await administration.issue_token(
            visit.actor,
            email,
            wanted.name,
            scopes=wanted.scopes,
            expires_at_ms=wanted.expires_at_ms,
        )
    except REFUSALS as error:
        refused = refused_token(form, error)
        return await _account_page(visit, token_form=refused, status=error.status)
    return await _account_page(visit, secret=(wanted.name, secret))


@post("/account/tokens/{name:str}/revoke", opt=personal_page())
async def revoke_own_token(visit: Here, name: FromPath[str]) -> Answer:
    """Refuse one of one's tokens."""
    await visit.parts.administration.revoke_token(visit.actor, visit.user.email, name)
    return visit.go(PATH, said=f"The token {name} is refused from now on.")


async def _account_page(
    visit: Visit,
    *,
    status: int = 200,
    password_form: Form | None = None,
    token_form: Form | None = None,
    secret: tuple[str, str] | None = None,
) -> Answer:
    administration, user = visit.parts.administration, visit.user
    sessions = await administration.list_sessions(user.email)
    tokens = await administration.list_tokens(user.email)
    return visit.show(
        "account/page.html",
        status=status,
        user=user_view(user),
        role=role_name(user.role),
        role_words=ROLES[user.role],
        sessions=[session_view(session) for session in sessions],
        this_session=await administration.session_id(visit.session_secret),
        tokens=[token_view(token) for token in tokens],
        password_form=password_form or Form(),
        token_form=token_form or empty_token_form(),
        scopes=scopes_of(user.role),
        expiries=EXPIRIES,
        reaches=REACHES,
        secret=secret,
    )


PAGES = (
    show_account,
    change_password,
    end_other_sessions,
    end_own_session,
    issue_own_token,
    revoke_own_token,
)
