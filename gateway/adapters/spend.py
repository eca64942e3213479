"""What a tenant has spent in a month, by the usage records that Postgres has."""

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from uuid import UUID

import asyncpg
from sqlalchemy import ColumnElement, Uuid, any_, func, literal, select, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from billing.postgres.tables import usage_record
from gateway.domain.billing_month import BillingMonth
from gateway.domain.spend import Cost
from gateway.serving.month_ports import SpendUnavailable

CONNECTIONS = 2
"""A pool of its own: sums of a month never keep a request, a change or the shipper waiting."""
STATEMENT_TIMEOUT_MS = 30_000
IDS_AT_ONCE = 10_000
_AWAY = (SQLAlchemyError, asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError)
_ROW = usage_record.c


class PostgresSpend:
    """Reads usage records; writes nothing. Every method raises SpendUnavailable."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    @asynccontextmanager
    async def snapshot(
        self, tenant_id: str, month: BillingMonth
    ) -> AsyncIterator["PostgresSnapshot"]:
        """One view of the tenant's rows admitted in the month, in its currency, as they were
        committed when it is first read; what is committed later is in none of its answers."""
        chosen = (
            _ROW.tenant_id == tenant_id,
            _ROW.admitted_at >= month.start,
            _ROW.admitted_at < month.end,
            _ROW.currency == month.currency,
        )
        try:
            async with self._engine.connect() as db:
                await db.execution_options(isolation_level="REPEATABLE READ")
                async with db.begin():
                    await db.execute(text(f"SET LOCAL statement_timeout = {STATEMENT_TIMEOUT_MS}"))
                    yield PostgresSnapshot(db, chosen)
        except _AWAY as error:
            raise SpendUnavailable(type(error)) from error


class PostgresSnapshot:
    """Implements `serving.month_ports.Snapshot`."""

    def __init__(self, db: AsyncConnection, chosen: tuple[ColumnElement[bool], ...]) -> None:
        self._db = db
        self._chosen = chosen

    async def costs(self) -> list[Cost]:
        """The sum of each key and model; what has no price costs nothing."""
        # A sum of bigint is numeric in Postgres: exact, however large.
        total = func.coalesce(func.sum(_ROW.cost_pico), 0)
        query = (
            select(_ROW.api_key_id, _ROW.model, total)
            .where(*self._chosen)
            .group_by(_ROW.api_key_id, _ROW.model)
        )
        return [Cost(key, model, int(pico)) for key, model, pico in await self._db.execute(query)]

    async def costs_of(self, request_ids: Collection[str]) -> list[Cost]:
        """Those of the requests that are among the snapshot's rows and cost something."""
        ids = [UUID(hex=request_id) for request_id in request_ids]
        found: list[Cost] = []
        for start in range(0, len(ids), IDS_AT_ONCE):
            some = ids[start : start + IDS_AT_ONCE]
            query = select(_ROW.api_key_id, _ROW.model, _ROW.cost_pico).where(
                *self._chosen,
                _ROW.request_id == any_(literal(some, ARRAY(Uuid))),
                _ROW.cost_pico.is_not(None),
            )
            found += [Cost(*row) for row in await self._db.execute(query)]
        return found
