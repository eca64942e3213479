"""`weir invoice`: draft, issue, void, pay, look at and export invoices."""

from datetime import date
from pathlib import Path

import click

from billing.domain.invoicing.lifecycle import Status
from billing.domain.invoicing.simulated import SIMULATED_NOTE
from billing.postgres.invoices import InvoiceFilter
from gateway.administration.invoice_desk import InvoiceDesk
from gateway.administration.views import View, page_view
from gateway.commands.connection import Connection, connected
from gateway.commands.desk import at_desk
from gateway.commands.documents import day_option, document_options, export_document
from gateway.commands.output import show_one, show_page
from gateway.commands.paging import paged

COLUMNS = (
    *("number", "status", "tenant_id", "month", "currency", "total", "outstanding", "overpaid"),
    *("due_on", "id"),
)
LINE_COLUMNS = (
    *("position", "kind", "month", "model", "provider", "class", "unit", "quantity"),
    *("unit_price", "price_per", "amount"),
)
SHOWN = (
    *("id", "number", "status", "tenant_id", "month", "time_zone", "currency", "subtotal", "tax"),
    *("total", "paid", "credited", "outstanding", "overpaid", "due_on", "row_count", "cut_off"),
)
PAYMENT_COLUMNS = ("reference", "received_on", "amount", "overpays", "reverses", "reason", "id")
NAMED = click.argument("invoice", metavar="INVOICE")
"""Its id, its number, or TENANT/MONTH."""


@click.group()
def invoice() -> None:
    """Invoices. INVOICE is an id, a number such as INV-2026-000001, or a tenant's month such as
    acme/2026-11."""


@invoice.command()
@click.argument("tenant_id", metavar="TENANT")
@click.argument("period", metavar="MONTH")
@click.option("--currency", help="Default: the tenant's own.")
@connected
def draft(connection: Connection, tenant_id: str, period: str, currency: str | None) -> None:
    """Draft TENANT's invoice of MONTH, such as 2026-11, or draft it anew."""
    drafted = at_desk(
        connection,
        lambda desk: desk.draft(connection.actor, tenant_id, period, currency=currency),
    )
    _show(drafted, as_json=connection.as_json)


@invoice.command()
@NAMED
@click.option(
    "--override",
    "override_reason",
    metavar="REASON",
    help="Issue it although something may still come; why goes on record.",
)
@connected
def issue(connection: Connection, invoice: str, override_reason: str | None) -> None:
    """Give a draft its number and freeze it, from the records that there are by now."""

    async def work(desk: InvoiceDesk) -> View:
        found = await desk.invoice_id(invoice)
        return await desk.issue(connection.actor, found, override_reason=override_reason)

    _show(at_desk(connection, work), as_json=connection.as_json)


@invoice.command()
@NAMED
@click.option("--reason", required=True, help="For the record.")
@connected
def void(connection: Connection, invoice: str, reason: str) -> None:
    """Make an issued invoice void, of which nothing was paid or credited."""

    async def work(desk: InvoiceDesk) -> View:
        return await desk.void(connection.actor, await desk.invoice_id(invoice), reason=reason)

    _show(at_desk(connection, work), as_json=connection.as_json)


@invoice.command()
@NAMED
@click.option("--amount", required=True, help="In the invoice's currency, such as 36.74.")
@click.option("--received-on", required=True, callback=day_option, help="Such as 2026-12-20.")
@click.option("--reference", required=True, help="What names it elsewhere; it is noted once.")
@click.option("--may-overpay", is_flag=True, help="Note it also if it is more than is outstanding.")
@connected
def pay(
    connection: Connection,
    invoice: str,
    *,
    amount: str,
    received_on: date,
    reference: str,
    may_overpay: bool,
) -> None:
    """Note a payment."""

    async def work(desk: InvoiceDesk) -> View:
        return await desk.pay(
            connection.actor,
            await desk.invoice_id(invoice),
            amount=amount,
            received_on=received_on,
            reference=reference,
            may_overpay=may_overpay,
        )

    _show_payment(at_desk(connection, work), as_json=connection.as_json)


@invoice.command()
@NAMED
@click.argument("payment", metavar="PAYMENT")
@click.option("--reason", required=True, help="For the record.")
@connected
def reverse(connection: Connection, invoice: str, payment: str, reason: str) -> None:
    """Take back a payment, by its id or reference, whole; by an entry of its own."""

    async def work(desk: InvoiceDesk) -> View:
        found = await desk.invoice_id(invoice)
        return await desk.take_back(connection.actor, found, payment, reason=reason)

    _show_payment(at_desk(connection, work), as_json=connection.as_json)


@invoice.command("list")
@click.option("--tenant", "tenant_id", help="Of one tenant only.")
@click.option("--period", metavar="MONTH", help="Of one month only, such as 2026-11.")
@click.option("--currency", help="Of one currency only.")
@click.option("--status", type=click.Choice([each.value for each in Status]))
@paged
@connected
def list_invoices(
    connection: Connection,
    limit: int,
    cursor: str | None,
    *,
    tenant_id: str | None,
    period: str | None,
    currency: str | None,
    status: str | None,
) -> None:
    """Invoices, the latest drafted first."""
    wanted = InvoiceFilter(
        tenant_id=tenant_id,
        month=period,
        currency=currency,
        status=None if status is None else Status(status),
    )
    page = at_desk(connection, lambda desk: desk.page(limit, cursor, wanted=wanted))
    view = page_view(page, page.items)
    if not connection.as_json:
        view["items"] = [{**each, "month": each["period"]["month"]} for each in view["items"]]
    show_page(view, COLUMNS, as_json=connection.as_json)
    for each in () if connection.as_json else view["items"]:
        if each["simulated"]:
            click.echo(f"{each['number'] or each['id']} {SIMULATED_NOTE.lower()}")


@invoice.command()
@NAMED
@connected
def show(connection: Connection, invoice: str) -> None:
    """An invoice with its lines."""

    async def work(desk: InvoiceDesk) -> View:
        return await desk.show(await desk.invoice_id(invoice))

    _show(at_desk(connection, work), as_json=connection.as_json)


@invoice.command()
@NAMED
@document_options
@connected
def export(connection: Connection, invoice: str, file_format: str, output: Path | None) -> None:
    """Write an invoice as PDF, CSV or JSON to a file; of an issued one always the same bytes."""

    async def work(desk: InvoiceDesk) -> None:
        stored, document = await desk.document(await desk.invoice_id(invoice))
        void = stored.status is Status.VOID
        export_document(document, file_format, output, void=void, as_json=connection.as_json)

    at_desk(connection, work)


def _show_payment(view: View, *, as_json: bool) -> None:
    if not as_json:
        of = view["invoice"]
        standing = {name: of[name] for name in ("status", "outstanding", "overpaid")}
        view = {**view, "invoice": of["number"], **standing}
    show_one(view, as_json=as_json)


def _show(view: View, *, as_json: bool) -> None:
    if as_json:
        show_one(view, as_json=True)
        return
    flat = {**view, "month": view["period"]["month"], "time_zone": view["period"]["time_zone"]}
    show_one({name: flat[name] for name in SHOWN}, as_json=False)
    if view["lines"]:
        click.echo()
        show_page({"items": view["lines"], "next_cursor": None}, LINE_COLUMNS, as_json=False)
    if view["payments"]:
        click.echo()
        show_page({"items": view["payments"], "next_cursor": None}, PAYMENT_COLUMNS, as_json=False)
    if view["simulated"]:
        click.echo(SIMULATED_NOTE)
    for blocker in view["blockers"]:
        click.echo(f"in the way of issuing it: {blocker['what']}")
    for each in view["unbilled"]:
        click.echo(
            f"on no invoice: {each['requests']} requests of {each['month']} in {each['currency']};"
            f" billed by {each['billed_by']}"
        )
