"""`weir credit-note`: issue, look at and export credit notes."""

from pathlib import Path

import click

from gateway.administration.invoice_desk import InvoiceDesk
from gateway.administration.pages import Page
from gateway.administration.views import View, page_view
from gateway.commands.connection import Connection, connected
from gateway.commands.desk import at_desk
from gateway.commands.documents import document_options, export_document
from gateway.commands.output import show_one, show_page
from gateway.commands.paging import paged

COLUMNS = ("number", "invoice_id", "tenant_id", "currency", "total", "issued_at", "reason", "id")
LINE_COLUMNS = ("position", "model", "unit", "invoiced", "amount")
SHOWN = (
    *("id", "number", "invoice_number", "tenant_id", "currency", "subtotal", "tax", "total"),
    *("reason", "reference", "issued_at"),
)
NAMED = click.argument("note", metavar="CREDIT-NOTE")


@click.group("credit-note")
def credit_note() -> None:
    """Credit notes. CREDIT-NOTE is an id, or a number such as CN-2026-000001."""


@credit_note.command()
@click.argument("invoice", metavar="INVOICE")
@click.option(
    "--line",
    "lines",
    multiple=True,
    metavar="POSITION=AMOUNT",
    help="So much of a line, net, such as 3=5.14; give it once a line. Default: all that is left.",
)
@click.option("--reason", required=True, help="Printed on it.")
@click.option("--reference", help="Your own name for it; it is credited once.")
@connected
def issue(
    connection: Connection,
    invoice: str,
    lines: tuple[str, ...],
    reason: str,
    reference: str | None,
) -> None:
    """Credit lines of an issued INVOICE, or all that is left of it."""
    cited = [_line(text) for text in lines] or None

    async def work(desk: InvoiceDesk) -> View:
        return await desk.credit(
            connection.actor,
            await desk.invoice_id(invoice),
            lines=cited,
            reason=reason,
            reference=reference,
        )

    _show(at_desk(connection, work), as_json=connection.as_json)


@credit_note.command("list")
@click.option("--tenant", "tenant_id", help="Of one tenant only.")
@click.option("--invoice", help="Of one invoice only.")
@paged
@connected
def list_credit_notes(
    connection: Connection,
    limit: int,
    cursor: str | None,
    *,
    tenant_id: str | None,
    invoice: str | None,
) -> None:
    """Credit notes, the latest first."""

    async def work(desk: InvoiceDesk) -> Page[View]:
        of = None if invoice is None else await desk.invoice_id(invoice)
        return await desk.credit_note_page(limit, cursor, tenant_id=tenant_id, invoice_id=of)

    page = at_desk(connection, work)
    show_page(page_view(page, page.items), COLUMNS, as_json=connection.as_json)


@credit_note.command()
@NAMED
@connected
def show(connection: Connection, note: str) -> None:
    """A credit note with the lines that it cites."""

    async def work(desk: InvoiceDesk) -> View:
        return await desk.show_credit_note(await desk.credit_note_id(note))

    _show(at_desk(connection, work), as_json=connection.as_json)


@credit_note.command()
@NAMED
@document_options
@connected
def export(connection: Connection, note: str, file_format: str, output: Path | None) -> None:
    """Write a credit note as PDF, CSV or JSON to a file: always the same bytes."""

    async def work(desk: InvoiceDesk) -> None:
        document = await desk.credit_document(await desk.credit_note_id(note))
        export_document(document, file_format, output, as_json=connection.as_json)

    at_desk(connection, work)


def _line(text: str) -> tuple[int, str]:
    position, equals, amount = text.partition("=")
    if not equals or not position.isascii() or not position.isdigit() or len(position) > 9:
        raise click.BadParameter(
            "must be like 3=5.14, a position and a net amount", param_hint="--line"
        )
    return int(position), amount


def _show(view: View, *, as_json: bool) -> None:
    if as_json:
        show_one(view, as_json=True)
        return
    show_one({name: view[name] for name in SHOWN}, as_json=False)
    click.echo()
    show_page({"items": view["lines"], "next_cursor": None}, LINE_COLUMNS, as_json=False)
