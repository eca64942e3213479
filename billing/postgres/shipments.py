"""One shipment of a journal: records, dead letters and the watermark, in one transaction."""

import struct
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import asyncpg
import msgspec
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from billing.postgres.dead_letters import DeadLetter, bury
from billing.postgres.journal_gaps import Gap, note_gaps
from billing.postgres.journal_watermarks import Watermark, advance_watermark
from billing.postgres.schema import is_behind
from billing.postgres.usage_copy import copy_batch
from billing.postgres.usage_direct import Encoded, copy_new, encode
from billing.postgres.usage_insert import JournaledRecord, insert_batch
from billing.postgres.usage_late import keep_late
from billing.postgres.usage_run import Run, encode_run

POISON_CLASSES = ("22", "23")
"""SQLSTATE classes that blame the row itself: data exceptions and violated constraints. Anything
else, a missing table among it, is a state of the database and will pass."""


COPY_ROWS_MIN = 32
"""Fewer go by INSERT: COPY takes some round trips more."""
UNFIT = (struct.error, ValueError, TypeError, AttributeError, OverflowError)
"""What encoding raises for values that no column could hold."""
COPY_FAILS = (asyncpg.PostgresError, asyncpg.InterfaceError, *UNFIT)
VALUE_SETS = ("_outcome_check", "_usage_source_check", "_class_check", "_provider_check")
"""Ends of the names of constraints that list the values which a release knows."""


class SchemaBehind(Exception):
    """The database refused a value that an older schema may not know yet; nothing was stored. It
    passes once the migrations have run."""


class WatermarkMoved(Exception):
    """The watermark in Postgres is not where this shipment begins; nothing was stored."""


@dataclass(frozen=True, kw_only=True)
class Shipment:
    """A contiguous run of one boot's records, from `before` up to `after`."""

    gateway_id: str
    boot: int
    rows: Sequence[JournaledRecord]
    encoded: Encoded | None = None
    """These rows, where that was done ahead (`encode_ahead`)."""
    letters: Sequence[DeadLetter]
    """Records that could not even be read."""
    gaps: Sequence[Gap] = ()
    """Numbers among them that the disk has lost."""
    before: Watermark
    after: Watermark


async def store(engine: AsyncEngine, shipment: Shipment) -> int:
    """Store a shipment whole; returns how many of its records became dead letters.

    A row that Postgres refuses is put among the dead letters and the rest goes on. Raises
    WatermarkMoved, SchemaBehind, or what the driver raises where Postgres is away: then nothing is
    stored, or all of it, and repeating is safe.
    """
    if shipment.encoded is not None and await _stored_as_new(engine, shipment, shipment.encoded):
        return len(shipment.letters)
    async with engine.begin() as connection:
        await _advance(connection, shipment)
        refused = await insert_isolating(connection, shipment.rows, untried=False)
        await _note(connection, shipment, refused)
    return len(shipment.letters) + len(refused)


async def _stored_as_new(engine: AsyncEngine, shipment: Shipment, encoded: Encoded) -> bool:
    """Whether all went in by the way with the fewest round trips, which is nearly every shipment's.
    Where COPY failed nothing did; a savepoint before it would cost all of them two more."""
    try:
        async with engine.begin() as connection:
            await _advance(connection, shipment)
            if await copy_new(connection, encoded) < len(shipment.rows):
                await keep_late(connection, shipment.rows)
            await _note(connection, shipment, [])
    except (asyncpg.PostgresError, asyncpg.InterfaceError):
        # COPY's own: SQLAlchemy wraps all others but a failed connect's, which fails again.
        return False
    return True


async def _advance(connection: AsyncConnection, shipment: Shipment) -> None:
    moved = await advance_watermark(
        connection,
        shipment.gateway_id,
        shipment.boot,
        before=shipment.before,
        after=shipment.after,
    )
    if not moved:
        raise WatermarkMoved


async def _note(
    connection: AsyncConnection, shipment: Shipment, refused: Sequence[DeadLetter]
) -> None:
    await bury(connection, [*shipment.letters, *refused])
    await note_gaps(connection, shipment.gateway_id, shipment.boot, shipment.gaps)


async def store_spare(engine: AsyncEngine, rows: Sequence[JournaledRecord]) -> int:
    """Store records that never reached a journal file; returns how many became dead letters."""
    async with engine.begin() as connection:
        refused = await insert_isolating(connection, rows)
        await bury(connection, refused)
    return len(refused)


def encode_ahead(rows: Sequence[JournaledRecord]) -> Encoded | None:
    """What `store` would do first with these rows, in whatever thread; None where they go by a way
    that needs none of it."""
    if len(rows) < COPY_ROWS_MIN:
        return None
    try:
        return encode_run(rows) if isinstance(rows, Run) else encode(rows)
    except UNFIT:
        return None  # one of them is no row of ours: which one is found out by INSERT


async def insert_isolating(
    connection: AsyncConnection, rows: Sequence[JournaledRecord], *, untried: bool = True
) -> list[DeadLetter]:
    """Insert what Postgres takes and return the rest, found by halving. Where it was not tried
    before, first as if all were new. Raises SchemaBehind."""
    if len(rows) >= COPY_ROWS_MIN:
        ready = encode_ahead(rows) if untried else None
        if ready is not None and await _copied(
            connection, rows, lambda: copy_new(connection, ready)
        ):
            return []
        if await _copied(connection, rows, lambda: copy_batch(connection, rows)):
            return []
    return await _isolating(connection, sorted(rows, key=lambda row: row.record.request_id.int))


async def _copied(
    connection: AsyncConnection,
    rows: Sequence[JournaledRecord],
    way: Callable[[], Awaitable[int]],
) -> bool:
    """Whether all went in by that way. Where not, nothing did, and a slower one finds out why: a
    record is there already, a row is to blame, the database, or only this way (a user who may make
    no temporary tables)."""
    try:
        async with connection.begin_nested():
            if await way() < len(rows):
                await keep_late(connection, rows)
    except (*COPY_FAILS, SQLAlchemyError):
        return False
    return True


async def _isolating(
    connection: AsyncConnection, rows: Sequence[JournaledRecord]
) -> list[DeadLetter]:
    if not rows:
        return []
    try:
        async with connection.begin_nested():
            if await insert_batch(connection, rows) < len(rows):
                await keep_late(connection, rows)
    except DBAPIError as error:
        reason = _poison_reason(error)
        if reason is None:
            raise
        if reason.endswith(VALUE_SETS) and await is_behind(connection):
            raise SchemaBehind(reason) from error
        if len(rows) == 1:
            return [_letter(rows[0], reason)]
    else:
        return []
    half = len(rows) // 2
    return [
        *await _isolating(connection, rows[:half]),
        *await _isolating(connection, rows[half:]),
    ]


def _poison_reason(error: DBAPIError) -> str | None:
    """The code that blames a row, with the constraint's name; None where no row is to blame."""
    code = getattr(error.orig, "sqlstate", None)
    cause = getattr(error.orig, "__cause__", None)
    if not isinstance(code, str) or not code.startswith(POISON_CLASSES):
        return None
    blamed = getattr(cause, "constraint_name", None) or getattr(cause, "column_name", None)
    if code.startswith("23") and blamed is None:
        # A partition that came or went under the statement: the same row fits the next time.
        return None
    return f"{code} {blamed}" if blamed else code


def _letter(row: JournaledRecord, reason: str) -> DeadLetter:
    source = f"{row.boot}:{row.seq}" if row.seq is not None else f"spare:{row.record.request_id}"
    return DeadLetter(
        row.gateway_id, source, row.record.request_id, reason, msgspec.msgpack.encode(row.record)
    )
