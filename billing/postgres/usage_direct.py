"""New usage records by COPY straight into their tables: the same rows as `insert_batch` writes, at
half of Postgres's work and a third of this process's.

COPY knows no ON CONFLICT: where one record is there already all of them go another way. That is
seldom, since a journal's watermark moves in the transaction that writes its rows. Rows are encoded
here, in COPY's binary format, and apart from the connection: in another thread, or ahead.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import asyncpg
from sqlalchemy.ext.asyncio import AsyncConnection

from billing.postgres.usage_binary import (
    ATTEMPT_NAMES,
    COPY_HEADER,
    COPY_TRAILER,
    RECORD_NAMES,
    Names,
    attempt_row,
    record_row,
)
from billing.postgres.usage_insert import JournaledRecord, attempts_of, in_order


@dataclass(frozen=True, slots=True)
class Encoded:
    """Records and their attempts as COPY takes them."""

    count: int
    records: bytes
    attempts: bytes | None
    """None where there are none."""


def encode(rows: Sequence[JournaledRecord]) -> Encoded:
    """One row a request, in the order of `in_order`. Needs no connection. Raises ValueError,
    TypeError, AttributeError or struct.error where a value is none that its column could hold."""
    unique = in_order(rows)
    names: Names = {}
    records = [record_row(row, names) for row in unique]
    names = {}
    attempts = [
        attempt_row(each.record, each.attempt, names)
        for each in attempts_of(unique, [row.record.request_id for row in unique])
    ]
    return framed(records, attempts)


def framed(records: Sequence[bytes], attempts: Sequence[bytes]) -> Encoded:
    """Rows in the order in which they are to be written."""
    return Encoded(
        len(records),
        b"".join([COPY_HEADER, *records, COPY_TRAILER]),
        b"".join([COPY_HEADER, *attempts, COPY_TRAILER]) if attempts else None,
    )


async def copy_new(connection: AsyncConnection, encoded: Encoded) -> int:
    """All rows, none of which may be there yet, or none; returns how many records that is.

    Raises the driver's own errors: UniqueViolationError where a record is there.
    """
    driver = (await connection.get_raw_connection()).driver_connection
    assert isinstance(driver, asyncpg.Connection)  # noqa: S101 - gateway.adapters.postgres
    await _send(driver, "usage_record", RECORD_NAMES, encoded.records)
    if encoded.attempts is not None:
        await _send(driver, "usage_attempt", ATTEMPT_NAMES, encoded.attempts)
    return encoded.count


async def _send(driver: asyncpg.Connection, table: str, names: Sequence[str], data: bytes) -> None:
    # A view: asyncpg takes bytes for a path, and asks whatever can be read in a thread. Command,
    # data and end leave at once, so that it is one round trip.
    await driver.copy_to_table(table, source=memoryview(data), columns=names, format="binary")
