"""What changed in the directory's tables, read so that no change falls between two looks."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Row, Table, func, select
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.sql.elements import ColumnElement

from billing.postgres.price_tables import plan_member, price
from billing.postgres.prices import MEMBER_COLUMNS, PRICE_COLUMNS
from gateway.adapters.directory_rows import (
    HOSTED_COLUMNS,
    KEY_COLUMNS,
    MODEL_COLUMNS,
    TENANT_COLUMNS,
    WORKER_COLUMNS,
)
from gateway.adapters.tables import (
    DIRECTORY_TABLES,
    api_key,
    hosted_provider,
    model,
    tenant,
    worker,
)

BATCH_ROWS = 100
"""Rows taken at once: a whole load must not hold up the streams of a gateway that serves."""

Rows = list[Row[Any]]


@dataclass(frozen=True)
class DirectoryRows:
    """Some changed rows."""

    tenants: Rows = field(default_factory=list)
    keys: Rows = field(default_factory=list)
    models: Rows = field(default_factory=list)
    workers: Rows = field(default_factory=list)
    providers: Rows = field(default_factory=list)
    prices: Rows = field(default_factory=list)
    members: Rows = field(default_factory=list)


_NEWEST = func.greatest(
    0,
    *(
        select(func.coalesce(func.max(table.c.changed), 0)).scalar_subquery()
        for table in DIRECTORY_TABLES
    ),
)


async def newest_change(db: AsyncConnection) -> int:
    """The highest `changed` of any row; 0 where there is none."""
    newest = (await db.execute(select(_NEWEST))).scalar_one()
    assert isinstance(newest, int)  # noqa: S101 - greatest of bigints
    return newest


async def changed_rows(
    db: AsyncConnection, *, after: int, newest: int
) -> AsyncIterator[DirectoryRows]:
    """Rows whose `changed` is above `after` and not above `newest`, in batches.

    Each query sees a state of its own, so all are bounded by the newest change that was seen before
    the first one: a later change to any table is left to the next look, never half taken.
    """
    async for rows in _batches(db, model, MODEL_COLUMNS, after, newest):
        yield DirectoryRows(models=rows)
    async for rows in _batches(db, worker, WORKER_COLUMNS, after, newest):
        yield DirectoryRows(workers=rows)
    async for rows in _batches(db, hosted_provider, HOSTED_COLUMNS, after, newest):
        yield DirectoryRows(providers=rows)
    async for rows in _batches(db, price, PRICE_COLUMNS, after, newest):
        yield DirectoryRows(prices=rows)
    async for rows in _batches(db, plan_member, MEMBER_COLUMNS, after, newest):
        yield DirectoryRows(members=rows)
    async for rows in _batches(db, tenant, TENANT_COLUMNS, after, newest):
        yield DirectoryRows(tenants=rows)
    async for rows in _batches(db, api_key, KEY_COLUMNS, after, newest):
        yield DirectoryRows(keys=rows)


async def _batches(
    db: AsyncConnection,
    table: Table,
    columns: Sequence[ColumnElement[Any]],
    after: int,
    newest: int,
) -> AsyncIterator[Rows]:
    while True:
        found = await db.execute(
            select(*columns)
            .where(table.c.changed > after, table.c.changed <= newest)
            .order_by(table.c.changed)
            .limit(BATCH_ROWS)
        )
        rows = list(found)
        if rows:
            yield rows
            after = rows[-1].changed
        if len(rows) < BATCH_ROWS:
            return
