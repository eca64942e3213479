"""`weir audit`: who changed what."""

import click

from gateway.administration import AuditFilters
from gateway.administration.views import audit_view, page_view
from gateway.commands.connection import Connection, connected
from gateway.commands.output import show_page
from gateway.commands.paging import paged

COLUMNS = ("at", "actor", "action", "subject_kind", "subject_id")


@click.group()
def audit() -> None:
    """The audit log."""


@audit.command("list")
@click.option("--actor", help="Such as user:admin@example.com or cli:root.")
@click.option("--action", help="Such as key.revoke.")
@click.option("--subject-kind", help="tenant, key, model, worker or user.")
@click.option("--subject-id", help="What was changed.")
@paged
@connected
def list_audit(
    connection: Connection, limit: int, cursor: str | None, **wanted: str | None
) -> None:
    """Changes, the latest first; `--json` shows before and after."""
    filters = AuditFilters(**wanted)
    page = connection.run(lambda administration: administration.list_audit(limit, cursor, filters))
    view = page_view(page, [audit_view(entry) for entry in page.items])
    show_page(view, COLUMNS, as_json=connection.as_json)
