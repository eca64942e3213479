"""`weir user`: who may use the console and the APIs beside it, their tokens and sessions."""

import click
from msgspec import UNSET

from gateway.administration import Administration
from gateway.administration.views import page_view, session_view, token_view, user_view
from gateway.commands.connection import Connection, connected
from gateway.commands.output import instant_option, show_list, show_one, show_page
from gateway.commands.paging import paged
from gateway.domain.account import Role

COLUMNS = ("id", "email", "role", "tenant_id", "disabled", "created_at")
TOKEN_COLUMNS = ("name", "scopes", "created_at", "expires_at", "last_used_at")
SESSION_COLUMNS = ("id", "address", "created_at", "seen_at", "expires_at")

role_option = click.option(
    "--role", type=click.Choice([each.value for each in Role]), help="What they may do."
)
tenant_option = click.option("--tenant", help="The tenant of a tenant's role.")
password_option = click.option(
    "--password",
    envvar="WEIR_USER_PASSWORD",
    prompt=True,
    hide_input=True,
    confirmation_prompt=True,
    help="12 characters or more; asked for, or taken from $WEIR_USER_PASSWORD.",
)


@click.group()
def user() -> None:
    """Users, their tokens and their sessions."""


@user.command()
@click.argument("email")
@click.option(
    "--role",
    type=click.Choice([each.value for each in Role]),
    required=True,
    help="What they may do.",
)
@tenant_option
@password_option
@connected
def create(
    connection: Connection, email: str, role: str, tenant: str | None, password: str
) -> None:
    """Create a user."""
    created = connection.run(
        lambda administration: administration.create_user(
            connection.actor, email, role, password, tenant_id=tenant
        )
    )
    show_one(user_view(created), as_json=connection.as_json)


@user.command("list")
@paged
@connected
def list_users(connection: Connection, limit: int, cursor: str | None) -> None:
    """Users by id."""
    page = connection.run(lambda administration: administration.list_users(limit, cursor))
    view = page_view(page, [user_view(each) for each in page.items])
    show_page(view, COLUMNS, as_json=connection.as_json)


@user.command()
@click.argument("email")
@click.option("--name", required=True, help="What the token is for; one live token a name.")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    help="A permission that it is held to, such as usage.read; give it once each. Default: all "
    "that the role has.",
)
@click.option("--expires-at", callback=instant_option, help="RFC 3339; default: never.")
@connected
def token(
    connection: Connection, email: str, name: str, scopes: tuple[str, ...], expires_at: int | None
) -> None:
    """Give a user a bearer token and print it; it cannot be shown again."""
    secret = connection.run(
        lambda administration: administration.issue_token(
            connection.actor, email, name, scopes=scopes or None, expires_at_ms=expires_at
        )
    )
    show_one({"email": email, "name": name, "token": secret}, as_json=connection.as_json)


@user.command()
@click.argument("email")
@connected
def tokens(connection: Connection, email: str) -> None:
    """A user's live tokens; never their secrets."""
    found = connection.run(lambda administration: administration.list_tokens(email))
    show_list([token_view(each) for each in found], TOKEN_COLUMNS, as_json=connection.as_json)


@user.command("revoke-token")
@click.argument("email")
@click.option("--name", required=True, help="The token's name.")
@connected
def revoke_token(connection: Connection, email: str, name: str) -> None:
    """Refuse a token from now on."""
    connection.run(
        lambda administration: administration.revoke_token(connection.actor, email, name)
    )
    show_one({"email": email, "name": name, "revoked": True}, as_json=connection.as_json)


@user.command()
@click.argument("email")
@password_option
@connected
def password(connection: Connection, email: str, password: str) -> None:
    """Give a user another password, end their sessions, and unlock them."""
    changed = connection.run(
        lambda administration: administration.set_password(connection.actor, email, password)
    )
    show_one(user_view(changed), as_json=connection.as_json)


@user.command("role")
@click.argument("email")
@role_option
@tenant_option
@connected
def change_role(connection: Connection, email: str, role: str | None, tenant: str | None) -> None:
    """Give a user another role, or another tenant; ends their sessions."""
    if role is None and tenant is None:
        raise click.UsageError("give --role, --tenant or both")
    changed = connection.run(
        lambda administration: administration.update_user(
            connection.actor, email, role=role, tenant_id=UNSET if tenant is None else tenant
        )
    )
    show_one(user_view(changed), as_json=connection.as_json)


@user.command()
@click.argument("email")
@connected
def sessions(connection: Connection, email: str) -> None:
    """A user's live sessions, the latest first."""
    found = connection.run(lambda administration: administration.list_sessions(email))
    show_list([session_view(each) for each in found], SESSION_COLUMNS, as_json=connection.as_json)


@user.command()
@click.argument("email")
@click.option("--session", "session_id", help="Only this one, by its id.")
@connected
def logout(connection: Connection, email: str, session_id: str | None) -> None:
    """End a user's sessions."""

    async def end(administration: Administration) -> int:
        if session_id is None:
            return await administration.log_out_everywhere(connection.actor, email)
        await administration.end_session(connection.actor, email, session_id)
        return 1

    show_one({"email": email, "ended": connection.run(end)}, as_json=connection.as_json)


@user.command()
@click.argument("email")
@connected
def disable(connection: Connection, email: str) -> None:
    """Refuse a user's password and all their tokens, and end their sessions."""
    _disable(connection, email, disabled=True)


@user.command()
@click.argument("email")
@connected
def enable(connection: Connection, email: str) -> None:
    """Take a user's password and tokens again."""
    _disable(connection, email, disabled=False)


def _disable(connection: Connection, email: str, *, disabled: bool) -> None:
    updated = connection.run(
        lambda administration: administration.update_user(
            connection.actor, email, disabled=disabled
        )
    )
    show_one(user_view(updated), as_json=connection.as_json)
