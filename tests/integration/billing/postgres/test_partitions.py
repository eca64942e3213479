import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine
from usage_examples import a_record, an_admission

from billing.postgres.partitions import ensure_partitions
from billing.postgres.usage_records import JournaledRecord, insert_batch
from gateway.adapters.postgres import async_engine

PLACES = "SELECT tableoid::regclass::text FROM usage_record"


@pytest.fixture
async def engine(database_url: str) -> AsyncIterator[AsyncEngine]:
    """An engine on a migrated database of this test's own."""
    opened = async_engine(database_url)
    yield opened
    await opened.dispose()


async def column(engine: AsyncEngine, statement: str) -> list[Any]:
    async with engine.connect() as db:
        return list((await db.execute(text(statement))).scalars())


async def insert_at(engine: AsyncEngine, at: datetime) -> None:
    record = a_record(an_admission(at_ms=int(at.timestamp() * 1000)))
    async with engine.begin() as db:
        await insert_batch(db, [JournaledRecord(record, "gw-1", 1, 1)])


async def ensure(engine: AsyncEngine, months_ahead: int) -> int:
    async with engine.begin() as db:
        return await ensure_partitions(db, months_ahead)


def a_month(ahead: int) -> datetime:
    """The 15th of the month that is so far ahead."""
    now = datetime.now(UTC)
    months = now.year * 12 + now.month - 1 + ahead
    return datetime(months // 12, months % 12 + 1, 15, tzinfo=UTC)


def partition(month: datetime) -> str:
    return f"usage_record_y{month:%Y}m{month:%m}"


async def test_a_row_lies_in_its_month(engine: AsyncEngine) -> None:
    """Migrating made this month's partition and those of the next three."""
    for ahead in (-1, 0, 3):
        await insert_at(engine, a_month(ahead))
    assert sorted(await column(engine, PLACES)) == sorted(
        partition(a_month(ahead)) for ahead in (-1, 0, 3)
    )


async def test_a_month_belongs_to_utc(engine: AsyncEngine) -> None:
    """The first and the last millisecond of a month lie in it, whatever the session's zone."""
    month = a_month(1).replace(day=1)
    following = a_month(2).replace(day=1)
    for at_ms in (int(month.timestamp() * 1000), int(following.timestamp() * 1000) - 1):
        await insert_at(engine, datetime.fromtimestamp(at_ms / 1000, UTC))
    assert await column(engine, PLACES) == [partition(month)] * 2


async def test_the_net_gives_back_what_it_caught(engine: AsyncEngine) -> None:
    """A row beyond all partitions is kept, found in the view, and moved once its month exists."""
    far = a_month(7)
    await insert_at(engine, far)
    assert await column(engine, PLACES) == ["usage_record_default"]
    assert await column(engine, "SELECT count(*) FROM usage_attempt_default") == [1]
    assert await ensure(engine, 7) == 8
    assert await column(engine, PLACES) == [partition(far)]
    assert await column(engine, "SELECT count(*) FROM usage_records") == [1]
    assert await column(engine, "SELECT count(*) FROM usage_attempts") == [1]
    await insert_at(engine, far)
    assert await column(engine, PLACES) == [partition(far)] * 2


async def test_a_new_partition_refuses_what_its_parent_refuses(engine: AsyncEngine) -> None:
    """It has the same key, so a repeated record is one row there too."""
    await ensure(engine, 9)
    record = a_record(an_admission(at_ms=int(a_month(9).timestamp() * 1000)))
    for expected in (1, 0):
        async with engine.begin() as db:
            assert await insert_batch(db, [JournaledRecord(record, "gw-1", 1, 1)]) == expected


async def test_many_gateways_make_them_once(engine: AsyncEngine) -> None:
    """All at once, in the middle of inserts: each partition is made by one, none fails."""
    making = [asyncio.create_task(ensure(engine, 12)) for _ in range(4)]
    await asyncio.gather(*(insert_at(engine, a_month(month)) for month in range(4, 13)))
    made = [await each for each in making]
    assert sorted(made) == [0, 0, 0, 18]
    assert await ensure(engine, 12) == 0
    places = await column(engine, PLACES)
    assert sorted(places) == sorted(partition(a_month(month)) for month in range(4, 13))
