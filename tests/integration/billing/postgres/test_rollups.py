"""Roll-ups are what the records are, whoever wrote these and however often."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine
from usage_examples import a_record, an_admission

from billing.domain.usage_record import Outcome, UsageRecord
from billing.postgres.rollups import load_differences, load_marks, newest_mark, roll_up
from billing.postgres.usage_copy import copy_batch
from billing.postgres.usage_insert import JournaledRecord, insert_batch
from gateway.adapters.postgres import async_engine

NOON_MS = 1_796_040_000_000
NOON = datetime.fromtimestamp(NOON_MS / 1000, UTC)
QUARTER_MS = 900_000
SINCE, UNTIL = NOON - timedelta(days=1), NOON + timedelta(days=1)


@pytest.fixture
async def engine(database_url: str) -> AsyncIterator[AsyncEngine]:
    """An engine on a migrated database of this test's own."""
    opened = async_engine(database_url)
    yield opened
    await opened.dispose()


def at(offset_ms: int, **changes: object) -> UsageRecord:
    """A record admitted so long after noon."""
    return a_record(an_admission(NOON_MS + offset_ms), **changes)


async def write(engine: AsyncEngine, *records: UsageRecord, copy: bool = False) -> int:
    """As a shipment does."""
    rows = [JournaledRecord(each, "gw-1", 7, n) for n, each in enumerate(records, 1)]
    async with engine.begin() as db:
        return await (copy_batch if copy else insert_batch)(db, rows)


async def roll_all(engine: AsyncEngine) -> int:
    """Until nothing is marked."""
    made = 0
    while True:
        async with engine.begin() as db:
            some = await roll_up(db)
        if not some:
            return made
        made += some


async def rolled(engine: AsyncEngine) -> list[tuple[Any, ...]]:
    """Minutes after noon, requests and tokens of each group."""
    async with engine.connect() as db:
        rows = await db.execute(
            text(
                "SELECT bucket, tenant_id, billable, final, requests, output_tokens"
                " FROM usage_rollup ORDER BY 1, 2, 3, 4"
            )
        )
        return [((row[0] - NOON).seconds // 60, *row[1:]) for row in rows]


async def differences(engine: AsyncEngine) -> list[Any]:
    async with engine.connect() as db:
        return list(await load_differences(db, SINCE, UNTIL, limit=100))


@pytest.mark.parametrize("copy", [False, True])
async def test_records_are_in_the_quarter_of_their_admission(
    engine: AsyncEngine, *, copy: bool
) -> None:
    """The first instant of a quarter is in it, its end is in the next; by INSERT and by COPY."""
    await write(
        engine,
        at(0),
        at(QUARTER_MS - 1),
        at(QUARTER_MS, outcome=Outcome.WORKER_FAILED, billable=False),
        at(QUARTER_MS, tenant_id="globex", cost_pico=10**18, currency="USD"),
        copy=copy,
    )
    assert await rolled(engine) == []
    assert await roll_all(engine) == 3
    assert await rolled(engine) == [
        (0, "acme", True, True, 2, 40),
        (15, "acme", False, True, 1, 20),
        (15, "globex", True, True, 1, 20),
    ]
    assert await differences(engine) == []


async def test_whatever_changes_is_made_anew(engine: AsyncEngine) -> None:
    """A provisional row that is replaced, a row that is changed or deleted by hand: nothing is
    counted twice, and a quarter without records has no roll-up."""
    kept = at(0)
    await write(engine, kept, at(5, final=False))
    await roll_all(engine)
    assert await rolled(engine) == [(0, "acme", True, False, 1, 20), (0, "acme", True, True, 1, 20)]
    async with engine.begin() as db:
        await db.execute(text("UPDATE usage_record SET final = true, output_tokens = 21"))
    assert await roll_all(engine) == 1
    assert await rolled(engine) == [(0, "acme", True, True, 2, 42)]
    async with engine.begin() as db:
        await db.execute(text("DELETE FROM usage_record"))
    await roll_all(engine)
    assert await rolled(engine) == []


async def test_a_mark_outlives_a_record_that_was_written_meanwhile(engine: AsyncEngine) -> None:
    """It is committed after the marks were taken: the quarter is made again."""
    await write(engine, at(0))
    async with engine.connect() as rolling:
        begun = await rolling.begin()
        assert await roll_up(rolling) == 1
        await write(engine, at(1))
        await begun.commit()
    async with engine.connect() as db:
        assert await load_marks(db, SINCE, UNTIL) == {(NOON, "acme")}
    assert len(await differences(engine)) == 1
    assert await roll_all(engine) == 1
    assert await differences(engine) == []


async def test_one_at_a_time_and_nobody_waits(engine: AsyncEngine) -> None:
    """Another that makes roll-ups is left alone; writers of the same quarter do not wait for each
    other, nor for who makes roll-ups."""
    await write(engine, at(0))
    async with engine.connect() as rolling, engine.connect() as other, engine.connect() as writer:
        await rolling.begin()
        assert await roll_up(rolling) == 1
        await other.begin()
        assert await roll_up(other) is None
        await writer.begin()
        await insert_batch(writer, [JournaledRecord(at(1), "gw-1", 7, 2)])
        async with asyncio.timeout(5):
            await write(engine, at(2))
        await writer.commit()
        await rolling.commit()
    await roll_all(engine)
    assert await rolled(engine) == [(0, "acme", True, True, 3, 60)]


async def test_a_row_that_is_given_to_another_tenant_marks_both(engine: AsyncEngine) -> None:
    """By hand; the time of a row cannot be changed."""
    moved = at(0)
    await write(engine, moved, at(1))
    await roll_all(engine)
    async with engine.begin() as db:
        await db.execute(
            text("UPDATE usage_record SET tenant_id = 'globex' WHERE request_id = :id"),
            {"id": moved.request_id},
        )
    assert await roll_all(engine) == 2
    assert await differences(engine) == []
    assert [row[:2] for row in await rolled(engine)] == [(0, "acme"), (0, "globex")]


async def test_marks_of_later_cause_nothing_but_go_with_their_quarter(engine: AsyncEngine) -> None:
    """Up to a mark: a quarter whose marks are all later waits; one that is made has none left."""
    await write(engine, at(0))
    async with engine.begin() as db:
        newest = await newest_mark(db)
    await write(engine, at(1), at(QUARTER_MS))
    async with engine.begin() as db:
        assert await roll_up(db, up_to=newest) == 1
        assert await roll_up(db, up_to=newest) == 0
        assert await load_marks(db, SINCE, UNTIL) == {(NOON + timedelta(minutes=15), "acme")}
    assert await rolled(engine) == [(0, "acme", True, True, 2, 40)]


async def test_a_rolled_back_record_leaves_no_mark(engine: AsyncEngine) -> None:
    async with engine.connect() as db:
        await db.begin()
        await insert_batch(db, [JournaledRecord(at(0), "gw-1", 7, 1)])
        await db.rollback()
    assert await roll_all(engine) == 0
