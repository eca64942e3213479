"""`weir budget-alert`: budgets that are four fifths spent, or whole."""

import asyncio

import click
from asyncpg import PostgresError
from sqlalchemy.exc import SQLAlchemyError

from gateway.adapters.postgres import async_engine
from gateway.administration.budget_alerts import read_alerts
from gateway.administration.checks import check_tenant_id
from gateway.administration.views import View
from gateway.commands.connection import Connection, connected
from gateway.commands.output import show_page
from gateway.commands.paging import paged
from gateway.errors import StoreUnavailable

COLUMNS = (
    "noticed_at", "tenant_id", "api_key_id", "model", "month", "threshold_percent", "spent",
    "limit", "currency",
)  # fmt: skip


@click.group("budget-alert")
def budget_alert() -> None:
    """Alerts about budgets."""


@budget_alert.command("list")
@click.option("--tenant", "tenant_id", help="One tenant only.")
@paged
@connected
def list_budget_alerts(
    connection: Connection, *, tenant_id: str | None, limit: int, cursor: str | None
) -> None:
    """Monthly budgets of which 80 or 100 percent were spent, the latest first; `--json` shows every
    field."""
    if tenant_id is not None:
        check_tenant_id(tenant_id, field="--tenant")
    view = asyncio.run(_read(connection.database_url, tenant_id, limit, cursor))
    show_page(view, COLUMNS, as_json=connection.as_json)


async def _read(database_url: str, tenant_id: str | None, limit: int, cursor: str | None) -> View:
    engine = async_engine(database_url, pooled=False)
    try:
        async with engine.connect() as db:
            return await read_alerts(db, tenant_id=tenant_id, limit=limit, cursor=cursor)
    except (OSError, PostgresError, SQLAlchemyError) as error:
        raise StoreUnavailable("Postgres cannot be reached, or is not migrated") from error
    finally:
        await engine.dispose()
