"""COPY writes what INSERT writes, and gives way to it where it cannot."""

from collections.abc import AsyncIterator, Sequence

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine
from usage_examples import a_record
from usage_rows import everything, many, of_every_kind, told_otherwise

from billing.postgres import shipments, usage_copy
from billing.postgres.shipments import store_spare
from billing.postgres.usage_copy import copy_batch
from billing.postgres.usage_insert import JournaledRecord, insert_batch
from gateway.adapters.postgres import async_engine


@pytest.fixture
async def engine(database_url: str) -> AsyncIterator[AsyncEngine]:
    """An engine on a migrated database of this test's own."""
    opened = async_engine(database_url)
    yield opened
    await opened.dispose()


async def test_both_ways_write_the_same(engine: AsyncEngine) -> None:
    """To the last column; what is there already stays, what is provisional is replaced."""
    rows = of_every_kind()
    found = []
    for way in (insert_batch, copy_batch):
        async with engine.begin() as db:
            assert await way(db, [rows[1], rows[0], *rows[1:], rows[2]]) == 6
        found.append(await everything(engine))
        final = [row._replace(record=told_otherwise(row.record)) for row in rows]
        async with engine.begin() as db:
            assert await way(db, final) == 1
        found[-1] += await everything(engine)
        async with engine.begin() as db:
            await db.execute(text("TRUNCATE usage_record, usage_attempt"))
    assert found[0] == found[1]
    assert [len(each) for each in found[0]] == [6, 7, 6, 7]


async def test_a_way_that_fails_loses_no_row(
    engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no temporary table can be made INSERT writes them all; where one can, INSERT is not
    asked."""
    inserted: list[int] = []

    async def noted(db: AsyncConnection, rows: Sequence[JournaledRecord]) -> int:
        inserted.append(len(rows))
        return await insert_batch(db, rows)

    monkeypatch.setattr(shipments, "insert_batch", noted)
    monkeypatch.setattr(shipments, "encode_ahead", lambda rows: None)
    rows = many(shipments.COPY_ROWS_MIN)
    assert await store_spare(engine, rows) == 0
    assert inserted == []
    monkeypatch.setattr(usage_copy._RECORDS, "create", "CREATE TEMP TABLE pg_temp.no (x no_type)")
    assert await store_spare(engine, many(40)) == 0
    assert inserted == [40]
    assert len((await everything(engine))[0]) == len(rows) + 40


async def test_one_bad_row_of_many(engine: AsyncEngine) -> None:
    """Found by the slower way, whatever COPY said of it, client's side or server's."""
    for number, bad in enumerate(
        (a_record(output_tokens=-1), a_record(queue_ms="soon"), a_record(finish_reason="a\0b"))
    ):
        rows = [*many(60), JournaledRecord(bad, "gw-1", 8, number)]
        assert await store_spare(engine, rows) == 1
    assert len((await everything(engine))[0]) == 180


async def test_a_connection_serves_again_and_again(engine: AsyncEngine) -> None:
    """The temporary tables are empty at the next batch, after a failed one too."""
    for _ in range(3):
        assert await store_spare(engine, [*many(40), *many(1, output_tokens=-1)]) == 1
        assert await store_spare(engine, many(40)) == 0
    assert len((await everything(engine))[0]) == 240
