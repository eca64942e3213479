"""`weir key`: create, list, revoke and rotate API keys."""

import re
from collections.abc import Awaitable, Callable

import click

from gateway.administration import Administration
from gateway.administration.views import key_view, page_view
from gateway.commands.confirmed import with_confirmation
from gateway.commands.connection import Connection, connected
from gateway.commands.output import instant_option, show_one, show_page
from gateway.commands.paging import paged
from gateway.domain.confirmation import Confirmation
from gateway.domain.tenant import ApiKey, RequestClass

COLUMNS = ("id", "name", "class", "secret_hint", "expires_at", "revoked_at", "rotated_to")
DURATION = re.compile(r"(?P<count>[0-9]{1,9})(?P<unit>ms|s|m|h|d)")
UNIT_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


@click.group()
def key() -> None:
    """API keys."""


@key.command()
@click.argument("tenant_id", metavar="TENANT")
@click.option("--name", required=True, help="For people.")
@click.option(
    "--class",
    "request_class",
    type=click.Choice([each.value for each in RequestClass]),
    default=RequestClass.INTERACTIVE.value,
    show_default=True,
    help="The highest class of its requests, and their default.",
)
@click.option("--expires-at", callback=instant_option, help="RFC 3339; default: never.")
@click.option("--model", "models", multiple=True, help="May use only these; repeatable.")
@click.option("--ip-allow", multiple=True, help="May be used only from these networks; repeatable.")
@connected
def create(
    connection: Connection,
    *,
    tenant_id: str,
    name: str,
    request_class: str,
    expires_at: int | None,
    models: tuple[str, ...],
    ip_allow: tuple[str, ...],
) -> None:
    """Create a key and print its secret, which cannot be shown again; says which gateways have not
    confirmed that they take it."""
    _show_new(
        connection,
        lambda administration: administration.create_key(
            connection.actor,
            tenant_id,
            name,
            request_class,
            expires_at_ms=expires_at,
            models=models or None,
            ip_allow=ip_allow or None,
        ),
    )


@key.command("list")
@click.argument("tenant_id", metavar="TENANT")
@paged
@connected
def list_keys(connection: Connection, tenant_id: str, limit: int, cursor: str | None) -> None:
    """A tenant's keys by id, without secrets."""
    page = connection.run(lambda administration: administration.list_keys(tenant_id, limit, cursor))
    view = page_view(page, [key_view(each) for each in page.items])
    show_page(view, COLUMNS, as_json=connection.as_json)


@key.command()
@click.argument("key_id", metavar="KEY")
@connected
def revoke(connection: Connection, key_id: str) -> None:
    """Refuse a key for good, within a second, and end what is open; says which gateways have not
    confirmed it."""
    revoked, confirmation = connection.run_confirmed(
        lambda administration: administration.revoke_key(connection.actor, key_id),
        lambda administration: administration.confirm_key(key_id),
    )
    view = with_confirmation(key_view(revoked), confirmation)
    show_one(view, as_json=connection.as_json)


def _duration_ms(_context: click.Context, option: click.Parameter, value: str) -> int:
    found = DURATION.fullmatch(value)
    if found is None:
        raise click.BadParameter("must be like 0s, 90s, 30m, 1h or 7d", param=option)
    return int(found["count"]) * UNIT_MS[found["unit"]]


@key.command()
@click.argument("key_id", metavar="KEY")
@click.option(
    "--grace",
    "grace_ms",
    default="1h",
    show_default=True,
    callback=_duration_ms,
    help="For how long the old key goes on working: 0s, 90s, 30m, 1h, 7d.",
)
@connected
def rotate(connection: Connection, key_id: str, grace_ms: int) -> None:
    """Replace a key by a new one with the same settings and print its secret; says which gateways
    have not confirmed that they take it."""
    _show_new(
        connection,
        lambda administration: administration.rotate_key(
            connection.actor, key_id, grace_ms=grace_ms
        ),
    )


def _show_new(
    connection: Connection,
    make: Callable[[Administration], Awaitable[tuple[ApiKey, str]]],
) -> None:
    async def confirmed(administration: Administration) -> tuple[ApiKey, str, Confirmation]:
        made, secret = await make(administration)
        return made, secret, await administration.confirm_key(made.id)

    made, secret, found = connection.run(confirmed)
    view = with_confirmation(key_view(made, secret=secret), found)
    show_one(view, as_json=connection.as_json)
