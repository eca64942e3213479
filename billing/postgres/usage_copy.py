"""Usage records by COPY: the same rows as `insert_batch` writes, at half the work of this process.

COPY knows no ON CONFLICT, so that rows go by way of temporary tables of the connection. They stay
there, empty after each transaction, as long as the connection does; their names tell of their
columns, since behind a pooler another release may have used the same connection.
"""

from collections.abc import Sequence
from hashlib import sha256
from typing import Any

import asyncpg
from sqlalchemy.ext.asyncio import AsyncConnection

from billing.postgres.usage_insert import (
    ATTEMPT_COLUMNS,
    ATTEMPT_ON_CONFLICT,
    RECORD_COLUMNS,
    RECORD_ON_CONFLICT,
    Column,
    JournaledRecord,
    Row,
    attempts_of,
    in_order,
)


class _Way:
    """From a temporary table into a table of usage."""

    def __init__(
        self, table: str, columns: Sequence[Column[Row]], order: str, on_conflict: str
    ) -> None:
        self.names = [column.name for column in columns]
        names = ", ".join(f'"{name}"' for name in self.names)
        types = ", ".join(f'"{column.name}" {column.parameter_type}' for column in columns)
        stored = ", ".join(column.stored for column in columns)
        self.sent = f"sent_{table}_{sha256(types.encode()).hexdigest()[:8]}"
        self.create = f"CREATE TEMP TABLE IF NOT EXISTS {self.sent} ({types}) ON COMMIT DELETE ROWS"
        self.insert = (
            f"INSERT INTO {table} ({names}) SELECT {stored} FROM {self.sent}"  # noqa: S608 - names of columns
            f" ORDER BY {order} ON CONFLICT {on_conflict}"
        )


_RECORDS = _Way("usage_record", RECORD_COLUMNS, "request_id, admitted_at", RECORD_ON_CONFLICT)
_ATTEMPTS = _Way(
    "usage_attempt",
    ATTEMPT_COLUMNS,
    "request_id, admitted_at, choice, attempt",
    ATTEMPT_ON_CONFLICT,
)


async def copy_batch(connection: AsyncConnection, rows: Sequence[JournaledRecord]) -> int:
    """As `insert_batch`, once a transaction: all rows or none; returns how many were written.

    Raises the driver's own errors, of whatever kind; what is to blame is not told apart here.
    """
    unique = in_order(rows)
    for way in (_RECORDS, _ATTEMPTS):
        await connection.exec_driver_sql(way.create)
    driver = (await connection.get_raw_connection()).driver_connection
    assert isinstance(driver, asyncpg.Connection)  # noqa: S101 - gateway.adapters.postgres
    written = await _send(
        driver, _RECORDS, [tuple([column.read(row) for column in RECORD_COLUMNS]) for row in unique]
    )
    attempts = attempts_of(unique, {row["request_id"] for row in written})
    if attempts:
        await _send(
            driver,
            _ATTEMPTS,
            [tuple([column.read(row) for column in ATTEMPT_COLUMNS]) for row in attempts],
        )
    return len(written)


async def _send(driver: asyncpg.Connection, way: _Way, rows: list[tuple[Any, ...]]) -> list[Any]:
    await driver.copy_records_to_table(way.sent, records=rows, columns=way.names)
    return list(await driver.fetch(way.insert))
