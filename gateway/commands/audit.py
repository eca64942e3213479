"""`weir audit`: who changed what, as a list or a file, and whether the log is as it was written."""

import sys
from collections.abc import Callable
from typing import Any

import click

from gateway.administration import Administration, AuditFilters
from gateway.administration.audit_chain import ChainReport, chain_view, head_from
from gateway.administration.audit_export import ExportFormat
from gateway.administration.views import audit_view, page_view
from gateway.commands.connection import Connection, connected
from gateway.commands.output import instant_option, show_one, show_page
from gateway.commands.paging import paged

COLUMNS = ("at", "actor", "action", "subject_kind", "subject_id")


@click.group()
def audit() -> None:
    """The audit log."""


def _filtered(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the filters."""
    options: list[Callable[[Callable[..., None]], Callable[..., None]]] = [
        click.option("--actor", help="Such as user:admin@example.com or cli:root."),
        click.option("--action", help="Such as key.revoke, or key.* for all of keys."),
        click.option("--subject-kind", help="tenant, key, model, worker, price or user."),
        click.option("--subject-id", help="What was changed."),
        click.option("--tenant", "tenant_id", help="Of all that belongs to that tenant."),
        click.option("--change", "change_id", help="Of one change, such as of many limits."),
        click.option("--since", "since_ms", callback=instant_option, help="From that time on."),
        click.option("--until", "until_ms", callback=instant_option, help="Before that time."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


@audit.command("list")
@_filtered
@paged
@connected
def list_audit(connection: Connection, limit: int, cursor: str | None, **wanted: Any) -> None:
    """Changes, the latest first; `--json` shows before and after."""
    filters = AuditFilters(**wanted)
    page = connection.run(lambda administration: administration.list_audit(limit, cursor, filters))
    view = page_view(page, [audit_view(entry) for entry in page.items])
    show_page(view, COLUMNS, as_json=connection.as_json)


@audit.command()
@_filtered
@click.option(
    "--format",
    "wanted",
    type=click.Choice([each.value for each in ExportFormat]),
    default=ExportFormat.CSV.value,
    show_default=True,
)
@connected
def export(connection: Connection, wanted: str, **narrowed: Any) -> None:
    """The entries as a file on standard output, the oldest first."""
    filters = AuditFilters(**narrowed)
    out = sys.stdout.buffer

    async def write(administration: Administration) -> None:
        async for piece in administration.export_audit(ExportFormat(wanted), filters):
            out.write(piece)

    connection.run(write)
    out.flush()


@audit.command()
@click.option("--from-id", type=click.IntRange(1), help="Only from that entry on.")
@click.option("--expect", help="A head that was written down, as id:hash; it must still be there.")
@connected
def verify(connection: Connection, from_id: int | None, expect: str | None) -> None:
    """Check that every entry is as it was written, and none is gone from between. The head that is
    shown is to be written down elsewhere: given back with `--expect` it shows that the end was not
    cut off. Status 1 names the first entry that does not fit."""
    head = None if expect is None else head_from(expect)
    report = connection.run(
        lambda administration: administration.verify_audit(from_id, expect=head)
    )
    if connection.as_json:
        show_one(chain_view(report), as_json=True)
    else:
        _tell(report)
    if report.misfit is not None:
        click.get_current_context().exit(1)


def _tell(report: ChainReport) -> None:
    if report.misfit is not None:
        click.echo(f"entry {report.misfit.id} does not fit: {report.misfit.why}", err=True)
        return
    head = "none" if report.head is None else f"{report.head.id}:{report.head.hash}"
    click.echo(f"{report.checked} entries fit; head {head}")
