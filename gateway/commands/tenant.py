"""`weir tenant`: create, look at, suspend and resume tenants."""

import click

from gateway.administration.views import page_view, tenant_view
from gateway.commands.connection import Connection, connected
from gateway.commands.output import show_one, show_page
from gateway.commands.paging import paged

COLUMNS = ("id", "name", "suspended", "currency", "time_zone")


@click.group()
def tenant() -> None:
    """Tenants."""


@tenant.command()
@click.argument("tenant_id", metavar="TENANT")
@click.option("--name", help="For people; default: the id.")
@click.option("--currency", default="USD", show_default=True, help="ISO 4217, for invoices.")
@click.option("--time-zone", default="UTC", show_default=True, help="IANA, for periods.")
@connected
def create(
    connection: Connection, tenant_id: str, name: str | None, currency: str, time_zone: str
) -> None:
    """Create a tenant without limits."""
    created = connection.run(
        lambda administration: administration.create_tenant(
            connection.actor,
            tenant_id,
            tenant_id if name is None else name,
            currency=currency,
            time_zone=time_zone,
        )
    )
    show_one(tenant_view(created), as_json=connection.as_json)


@tenant.command("list")
@paged
@connected
def list_tenants(connection: Connection, limit: int, cursor: str | None) -> None:
    """Tenants by id."""
    page = connection.run(lambda administration: administration.list_tenants(limit, cursor))
    view = page_view(page, [tenant_view(each) for each in page.items])
    show_page(view, COLUMNS, as_json=connection.as_json)


@tenant.command()
@click.argument("tenant_id", metavar="TENANT")
@connected
def show(connection: Connection, tenant_id: str) -> None:
    """One tenant."""
    found = connection.run(lambda administration: administration.get_tenant(tenant_id))
    show_one(tenant_view(found), as_json=connection.as_json)


@tenant.command()
@click.argument("tenant_id", metavar="TENANT")
@connected
def suspend(connection: Connection, tenant_id: str) -> None:
    """Refuse all of a tenant's requests, within a second."""
    _suspend(connection, tenant_id, suspended=True)


@tenant.command()
@click.argument("tenant_id", metavar="TENANT")
@connected
def resume(connection: Connection, tenant_id: str) -> None:
    """End a suspension."""
    _suspend(connection, tenant_id, suspended=False)


def _suspend(connection: Connection, tenant_id: str, *, suspended: bool) -> None:
    updated = connection.run(
        lambda administration: administration.update_tenant(
            connection.actor, tenant_id, suspended=suspended
        )
    )
    show_one(tenant_view(updated), as_json=connection.as_json)
