"""`weir seller`: who invoices are from."""

from typing import Any

import click
import msgspec

from billing.domain.invoicing.party import Seller
from gateway.administration.invoice_desk import InvoiceDesk
from gateway.administration.views import View
from gateway.commands.connection import Connection, connected
from gateway.commands.desk import at_desk
from gateway.commands.output import show_one
from gateway.errors import NotFound


@click.group()
def seller() -> None:
    """Who sells: printed on what is issued from then on."""


@seller.command()
@connected
def show(connection: Connection) -> None:
    """Who sells now."""
    show_one(at_desk(connection, lambda desk: desk.seller()), as_json=connection.as_json)


@seller.command("set")
@click.option("--name", help="The legal name.")
@click.option("--address", multiple=True, help="A line as printed; give it once a line.")
@click.option("--country", help="ISO 3166, two letters.")
@click.option("--tax-id", help="Such as a VAT number.")
@click.option("--email", help="For questions.")
@click.option("--bank", multiple=True, help="A line that says where to pay; give it once a line.")
@click.option("--invoice-prefix", help="Numbers begin with it; at first INV.")
@click.option("--credit-note-prefix", help="At first CN.")
@click.option("--time-zone", help="IANA, of the dates on documents; at first UTC.")
@connected
def set_seller(connection: Connection, **given: Any) -> None:
    """Change what is named; an empty text takes it away. The first time name and country are
    needed."""
    wanted = {name: value for name, value in given.items() if value not in (None, ())}

    async def work(desk: InvoiceDesk) -> View:
        try:
            before = await desk.seller()
        except NotFound:
            before = {}
        fields = {**before, **wanted}
        for needed in ("name", "country"):
            if needed not in fields:
                raise click.UsageError(f"nobody has said who sells yet: --{needed} is needed")
        return await desk.set_seller(connection.actor, msgspec.convert(fields, Seller))

    show_one(at_desk(connection, work), as_json=connection.as_json)
