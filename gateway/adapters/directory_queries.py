"""What changed in the directory's tables, read so that no change falls between two looks."""

from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Row, Table, func, select
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine
from sqlalchemy.sql.elements import ColumnElement

from gateway.adapters.directory_rows import (
    KEY_COLUMNS,
    MODEL_COLUMNS,
    TENANT_COLUMNS,
    WORKER_COLUMNS,
)
from gateway.adapters.tables import DIRECTORY_TABLES, api_key, model, tenant, worker

Rows = list[Row[Any]]


@dataclass(frozen=True)
class DirectoryRows:
    """Rows changed since the last look, up to and including the change numbered `newest`."""

    newest: int
    tenants: Rows = field(default_factory=list)
    keys: Rows = field(default_factory=list)
    models: Rows = field(default_factory=list)
    workers: Rows = field(default_factory=list)


async def read_changes(engine: AsyncEngine, *, after: int) -> DirectoryRows:
    """Rows whose `changed` is above `after`; 0 reads everything. Usually one cheap round trip.

    Each query sees a state of its own, so all are bounded by the newest change that the first one
    saw: a later change to any table is left to the next look, not half taken.
    """
    async with engine.connect() as db:
        newest = (await db.execute(select(_NEWEST))).scalar_one()
        if newest <= after:
            return DirectoryRows(newest)
        return DirectoryRows(
            newest=newest,
            models=await _between(db, model, MODEL_COLUMNS, after, newest),
            workers=await _between(db, worker, WORKER_COLUMNS, after, newest),
            tenants=await _between(db, tenant, TENANT_COLUMNS, after, newest),
            keys=await _between(db, api_key, KEY_COLUMNS, after, newest),
        )


_NEWEST = func.greatest(
    0,
    *(
        select(func.coalesce(func.max(table.c.changed), 0)).scalar_subquery()
        for table in DIRECTORY_TABLES
    ),
)


async def _between(
    db: AsyncConnection,
    table: Table,
    columns: tuple[ColumnElement[Any], ...],
    after: int,
    newest: int,
) -> Rows:
    found = await db.execute(
        select(*columns).where(table.c.changed > after, table.c.changed <= newest)
    )
    return list(found)
