"""What goes straight into the tables is what INSERT writes, once, or nothing."""

from collections.abc import AsyncIterator

import asyncpg
import msgspec
import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine
from usage_rows import everything, many, of_every_kind, told_otherwise

from billing.postgres import shipments
from billing.postgres.journal_watermarks import Watermark
from billing.postgres.shipments import (
    COPY_ROWS_MIN,
    Shipment,
    WatermarkMoved,
    encode_ahead,
    store,
    store_spare,
)
from billing.postgres.usage_binary import ATTEMPT_NAMES, RECORD_NAMES
from billing.postgres.usage_direct import copy_new, encode
from billing.postgres.usage_insert import (
    ATTEMPT_COLUMNS,
    RECORD_COLUMNS,
    JournaledRecord,
    insert_batch,
)
from billing.postgres.usage_run import Run
from gateway.adapters.journal.entries import EndedEntry
from gateway.adapters.postgres import async_engine


@pytest.fixture
async def engine(database_url: str) -> AsyncIterator[AsyncEngine]:
    """An engine on a migrated database of this test's own."""
    opened = async_engine(database_url)
    yield opened
    await opened.dispose()


def test_no_column_is_left_out() -> None:
    """Both ways know the same columns."""
    assert sorted(RECORD_NAMES) == sorted(column.name for column in RECORD_COLUMNS)
    assert sorted(ATTEMPT_NAMES) == sorted(column.name for column in ATTEMPT_COLUMNS)


def partly_empty() -> list[JournaledRecord]:
    """One of each set of columns that are encoded together, empty alone."""
    (row,) = many(1, price_id=1, cost_pico=-(2**63), list_cost_pico=2**63 - 1, currency="EUR")
    names = ("first_token_at_ms", "ttft_ms", "tpot_us", "itl_max_us", "price_id", "cost_pico")
    return [
        row._replace(record=msgspec.structs.replace(other.record, **{name: None}))
        for name, other in zip(names, many(len(names), currency="EUR", price_id=9), strict=True)
    ]


async def test_it_writes_what_insert_writes(engine: AsyncEngine) -> None:
    """To the last column, whatever is empty, twice told, or of an odd text."""
    rows = [*of_every_kind(), *partly_empty()]
    found = []
    async with engine.begin() as db:
        assert await insert_batch(db, rows) == len(rows)
    found.append(await everything(engine))
    async with engine.begin() as db:
        await db.execute(text("TRUNCATE usage_record, usage_attempt"))
        assert await copy_new(db, encode([rows[1], *rows, rows[2]])) == len(rows)
    found.append(await everything(engine))
    assert found[0] == found[1]
    assert [len(each) for each in found[1]] == [12, 13]


async def test_nothing_goes_twice(engine: AsyncEngine) -> None:
    """Where one of many is there, the others go by another way: it stays as it was, or gives way
    to a final one."""
    rows = [*many(COPY_ROWS_MIN), *many(1, final=False)]
    assert await store_spare(engine, rows[-2:]) == 0
    with pytest.raises(asyncpg.UniqueViolationError):
        async with engine.begin() as db:
            await copy_new(db, encode(rows))
    assert len((await everything(engine))[0]) == 2
    told = [row._replace(record=told_otherwise(row.record)) for row in rows]
    assert await store_spare(engine, told) == 0
    records, attempts = await everything(engine)
    assert len(records) == len(attempts) == len(rows)
    assert all(record["final"] for record in records)
    kept = str(rows[-2].record.request_id)
    assert [each["output_tokens"] for each in attempts if each["request_id"] == kept] == [20]


def a_shipment(rows: list[JournaledRecord]) -> Shipment:
    """The first of its boot, made ready ahead."""
    run = Run([EndedEntry(row.seq or 0, row.record) for row in rows], "gw-1", 7)
    seq = len(rows)
    return Shipment(
        gateway_id="gw-1",
        boot=7,
        rows=run,
        encoded=encode_ahead(run),
        letters=(),
        before=Watermark(),
        after=Watermark(seq=seq, ended_count=seq),
    )


async def test_what_is_made_ready_ahead_is_what_is_written(
    engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No slower way is asked where all rows are new, and rows are encoded once."""

    async def never(db: AsyncConnection, rows: object) -> int:
        raise AssertionError

    assert encode_ahead(many(COPY_ROWS_MIN - 1)) is None
    shipment = a_shipment(many(COPY_ROWS_MIN))
    assert shipment.encoded is not None
    for way in ("copy_batch", "insert_batch", "encode_ahead"):
        monkeypatch.setattr(shipments, way, never)
    assert await store(engine, shipment) == 0
    assert len((await everything(engine))[0]) == COPY_ROWS_MIN


async def test_a_shipment_of_which_one_is_there(engine: AsyncEngine) -> None:
    """Its others are stored and its watermark moves, once; what differs from the row is kept."""
    rows = many(COPY_ROWS_MIN)
    assert await store_spare(engine, [rows[3]._replace(boot=None, seq=None)]) == 0
    differs = msgspec.structs.replace(rows[3].record, output_tokens=99)
    told = [row._replace(record=differs) if at == 3 else row for at, row in enumerate(rows)]
    shipment = a_shipment(told)
    assert await store(engine, shipment) == 0
    with pytest.raises(WatermarkMoved):
        await store(engine, shipment)
    records, _ = await everything(engine)
    assert len(records) == COPY_ROWS_MIN
    assert {record["output_tokens"] for record in records} == {20}
    async with engine.connect() as db:
        assert await db.scalar(text("SELECT count(*) FROM usage_late")) == 1


async def test_a_shipment_that_tells_twice(engine: AsyncEngine) -> None:
    """The first account is the row."""
    rows = many(COPY_ROWS_MIN)
    differs = msgspec.structs.replace(rows[3].record, output_tokens=99)
    again = rows[3]._replace(record=differs, seq=COPY_ROWS_MIN + 1)
    assert await store(engine, a_shipment([*rows, again])) == 0
    records, _ = await everything(engine)
    assert len(records) == COPY_ROWS_MIN
    assert {record["output_tokens"] for record in records} == {20}


async def test_a_value_that_no_column_holds(engine: AsyncEngine) -> None:
    """It is not encoded: the others are stored, and it is a dead letter."""
    for change in ({"output_tokens": 2**31}, {"queue_ms": "soon"}):
        rows = [*many(COPY_ROWS_MIN), *many(1, **change)]
        assert encode_ahead(rows) is None
        assert await store_spare(engine, rows) == 1
    assert len((await everything(engine))[0]) == 2 * COPY_ROWS_MIN
