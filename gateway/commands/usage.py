"""`weir usage`: what was used, record by record and in sums."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import TypeVar

import click
import msgspec
from asyncpg import PostgresError
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from billing.domain.invoicing.simulated import SIMULATED
from billing.postgres.usage_records import (
    GroupBy,
    InvalidCursor,
    UsageFilter,
    list_records,
    sum_usage,
)
from gateway.adapters.births import Births, history_in
from gateway.adapters.completeness import Found, UsageCompleteness
from gateway.adapters.postgres import async_engine
from gateway.adapters.presence import Gateways
from gateway.adapters.redis import connect_redis
from gateway.adapters.usage_reports import standing_view
from gateway.administration.views import View
from gateway.commands.connection import REDIS_TIMEOUT_MS, Connection, connected
from gateway.commands.output import instant_option, show_page
from gateway.commands.paging import paged
from gateway.commands.usage_request import show_request
from gateway.domain.completeness import NOT_KNOWN
from gateway.errors import StoreUnavailable

LIST_COLUMNS = (
    "admitted_at",
    "request_id",
    "tenant_id",
    "model",
    "class",
    "prompt_tokens",
    "output_tokens",
    "outcome",
    "billable",
    "provider",
)
SUM_COLUMNS = (
    "group",
    "requests",
    "prompt_tokens",
    "cached_prompt_tokens",
    "output_tokens",
    "billable_requests",
    "billable_prompt_tokens",
    "billable_output_tokens",
)
Result = TypeVar("Result")


@click.group()
def usage() -> None:
    """Usage records."""


usage.add_command(show_request)


def _chosen(command: Callable[..., None]) -> Callable[..., None]:
    command = click.option(
        "--until", "until_ms", callback=instant_option, help="Admitted before this instant."
    )(command)
    command = click.option(
        "--since", "since_ms", callback=instant_option, help="Admitted at or after this instant."
    )(command)
    return click.option("--tenant", "tenant_id", help="One tenant only.")(command)


@usage.command("list")
@_chosen
@paged
@connected
def list_usage(
    connection: Connection,
    *,
    tenant_id: str | None,
    since_ms: int | None,
    until_ms: int | None,
    limit: int,
    cursor: str | None,
) -> None:
    """Usage records, the latest first; `--json` shows every field."""
    chosen = _filter(tenant_id, since_ms, until_ms)
    try:
        page, found = _read(
            connection, lambda db: list_records(db, chosen, limit=limit, cursor=cursor)
        )
    except InvalidCursor as error:
        raise click.UsageError("--cursor is not one that this list gave") from error
    items = [msgspec.to_builtins(record) for record in page.records]
    provisional = sum(not record.final for record in page.records)
    view = {
        "items": items,
        "next_cursor": page.next_cursor,
        **standing_view(found, until_ms=until_ms, provisional_requests=provisional),
    }
    show_page(view, LIST_COLUMNS, as_json=connection.as_json)
    simulated = sum(SIMULATED in record.usage_flags for record in page.records)
    if simulated and not connection.as_json:
        click.echo(f"simulated: {simulated} of these")
    _warn(view, as_json=connection.as_json)


@usage.command("sum")
@click.option(
    "--by",
    "group_by",
    type=click.Choice([each.value for each in GroupBy]),
    default=GroupBy.TENANT.value,
    show_default=True,
    help="What to sum by; a day is one of UTC.",
)
@_chosen
@connected
def sum_records(
    connection: Connection,
    *,
    group_by: str,
    tenant_id: str | None,
    since_ms: int | None,
    until_ms: int | None,
) -> None:
    """Requests and tokens in sums; `--json` shows every field."""
    chosen = _filter(tenant_id, since_ms, until_ms)
    sums, found = _read(connection, lambda db: sum_usage(db, chosen, group_by=GroupBy(group_by)))
    provisional = sum(each.provisional_requests for each in sums)
    view = {
        "group_by": group_by,
        "items": [msgspec.to_builtins(each) for each in sums],
        "next_cursor": None,
        **standing_view(found, until_ms=until_ms, provisional_requests=provisional),
    }
    show_page(view, SUM_COLUMNS, as_json=connection.as_json)
    _warn(view, as_json=connection.as_json)


def _filter(tenant_id: str | None, since_ms: int | None, until_ms: int | None) -> UsageFilter:
    return UsageFilter(tenant_id=tenant_id, since=_instant(since_ms), until=_instant(until_ms))


def _instant(at_ms: int | None) -> datetime | None:
    return None if at_ms is None else datetime.fromtimestamp(at_ms / 1000, UTC)


def _warn(view: View, *, as_json: bool) -> None:
    """A table has no room for it; the document says it itself."""
    if not (as_json or view["complete"]):
        through = view["complete_through"] or "nothing that is known"
        click.echo(f"Records may be missing: complete through {through}.", err=True)


def _read(
    connection: Connection, work: Callable[[AsyncConnection], Awaitable[Result]]
) -> tuple[Result, Found]:
    """Do `work` on a connection to Postgres, once it was asked how complete that is. Raises
    StoreUnavailable."""
    return asyncio.run(_reading(connection, work))


async def _reading(
    connection: Connection, work: Callable[[AsyncConnection], Awaitable[Result]]
) -> tuple[Result, Found]:
    engine = async_engine(connection.database_url, pooled=False)
    try:
        found = await look_at_usage(connection.redis_url, engine)
        async with engine.connect() as db:
            return await work(db), found
    except (OSError, PostgresError, SQLAlchemyError) as error:
        raise StoreUnavailable("Postgres cannot be reached, or is not migrated") from error
    finally:
        await engine.dispose()


async def look_at_usage(redis_url: str | None, engine: AsyncEngine) -> Found:
    """How complete usage is; without Redis nobody knows."""
    if redis_url is None:
        return Found(NOT_KNOWN, 0)
    redis = connect_redis(redis_url, timeout_ms=REDIS_TIMEOUT_MS)
    try:
        gateways = Gateways(redis, Births(redis, history_in(engine)))
        return await UsageCompleteness(gateways, engine).look()
    finally:
        await redis.aclose()
