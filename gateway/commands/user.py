"""`weir user`: who may use the admin and finance APIs, and their tokens."""

import click

from gateway.administration.views import page_view, user_view
from gateway.commands.connection import Connection, connected
from gateway.commands.output import instant_option, show_one, show_page
from gateway.commands.paging import paged
from gateway.domain.account import Role

COLUMNS = ("id", "email", "role", "disabled", "created_at")


@click.group()
def user() -> None:
    """Users and their tokens."""


@user.command()
@click.argument("email")
@click.option(
    "--role",
    type=click.Choice([each.value for each in Role]),
    required=True,
    help="What they may do.",
)
@click.option(
    "--password",
    envvar="WEIR_USER_PASSWORD",
    prompt=True,
    hide_input=True,
    confirmation_prompt=True,
    help="12 characters or more; asked for, or taken from $WEIR_USER_PASSWORD.",
)
@connected
def create(connection: Connection, email: str, role: str, password: str) -> None:
    """Create a user."""
    created = connection.run(
        lambda administration: administration.create_user(connection.actor, email, role, password)
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
@click.option("--expires-at", callback=instant_option, help="RFC 3339; default: never.")
@connected
def token(connection: Connection, email: str, name: str, expires_at: int | None) -> None:
    """Give a user a bearer token and print it; it cannot be shown again."""
    secret = connection.run(
        lambda administration: administration.issue_token(
            connection.actor, email, name, expires_at_ms=expires_at
        )
    )
    show_one({"email": email, "name": name, "token": secret}, as_json=connection.as_json)


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
@connected
def disable(connection: Connection, email: str) -> None:
    """Refuse all of a user's tokens."""
    _disable(connection, email, disabled=True)


@user.command()
@click.argument("email")
@connected
def enable(connection: Connection, email: str) -> None:
    """Take a user's tokens again."""
    _disable(connection, email, disabled=False)


def _disable(connection: Connection, email: str, *, disabled: bool) -> None:
    updated = connection.run(
        lambda administration: administration.update_user(
            connection.actor, email, disabled=disabled
        )
    )
    show_one(user_view(updated), as_json=connection.as_json)
