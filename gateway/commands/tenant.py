"""`weir tenant`: create, look at, suspend and resume tenants."""

from typing import Any

import click
from msgspec.structs import replace

from gateway.administration import Administration
from gateway.administration.billing_profiles import check_billing_profile
from gateway.administration.views import page_view, tenant_view
from gateway.commands.confirmed import with_confirmation
from gateway.commands.connection import Connection, connected
from gateway.commands.output import show_one, show_page
from gateway.commands.paging import paged
from gateway.domain.tenant import Tenant

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
@click.option("--legal-name", help="Whom invoices are made out to; default: the tenant's name.")
@click.option("--email", help="Where invoices go.")
@click.option("--address", multiple=True, help="A line as printed; give it once a line.")
@click.option("--country", help="ISO 3166, two letters.")
@click.option("--tax-id", help="Such as a VAT number.")
@click.option("--tax-rate", help="Percent, such as 19 or 8.875.")
@click.option("--tax-name", help="What the tax is called, such as VAT.")
@click.option("--tax-note", help="Printed below the total, such as why no tax is charged.")
@click.option("--payment-terms-days", type=click.IntRange(0, 365), help="Default: 30.")
@click.option("--reference", help="Printed on each invoice, such as an order's number.")
@connected
def billing(connection: Connection, tenant_id: str, **given: Any) -> None:
    """Change whom a tenant's invoices are made out to and on what terms: what is named; an empty
    text takes it away. What was issued stays as it is."""
    wanted = {name: value for name, value in given.items() if value not in (None, ())}

    async def change(administration: Administration) -> Tenant:
        found = await administration.get_tenant(tenant_id)
        if not wanted:
            return found
        # An empty text is none, as a text of blanks is.
        profile = replace(
            found.billing_profile,
            **{name: value if value != "" else None for name, value in wanted.items()},
        )
        checked = check_billing_profile(profile, prefix="")
        return await administration.update_tenant(
            connection.actor, tenant_id, billing_profile=checked
        )

    show_one(tenant_view(connection.run(change)), as_json=connection.as_json)


@tenant.command()
@click.argument("tenant_id", metavar="TENANT")
@connected
def suspend(connection: Connection, tenant_id: str) -> None:
    """Refuse all of a tenant's requests, within a second, and end those that are open; says which
    gateways have not confirmed it."""
    _suspend(connection, tenant_id, suspended=True)


@tenant.command()
@click.argument("tenant_id", metavar="TENANT")
@connected
def resume(connection: Connection, tenant_id: str) -> None:
    """End a suspension."""
    _suspend(connection, tenant_id, suspended=False)


def _suspend(connection: Connection, tenant_id: str, *, suspended: bool) -> None:
    updated, confirmation = connection.run_confirmed(
        lambda administration: administration.update_tenant(
            connection.actor, tenant_id, suspended=suspended
        ),
        lambda administration: administration.confirm_tenant(tenant_id),
    )
    view = with_confirmation(tenant_view(updated), confirmation)
    show_one(view, as_json=connection.as_json)
