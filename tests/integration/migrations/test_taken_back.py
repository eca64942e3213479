"""Attempts that gave their place away, in a database of this release and of the one before."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine
from usage_examples import a_record, an_admission

from billing.domain.usage_record import Outcome, UsageRecord
from billing.postgres.usage_insert import JournaledRecord, insert_batch
from gateway.adapters.postgres import async_engine
from gateway.migrate import downgrade, upgrade

LONG_AGO_MS = 1_500_000_000_000
"""Before the first partition: what is from then lies in the default one."""


@pytest.fixture
async def engine(database_url: str) -> AsyncIterator[AsyncEngine]:
    """An engine on a migrated database of this test's own."""
    made = async_engine(database_url, pooled=False)
    yield made
    await made.dispose()


def twice_tried(at_ms: int | None = None) -> UsageRecord:
    """A request whose first attempt gave its place away."""
    record = a_record(an_admission(at_ms))
    (last,) = record.attempts
    first = msgspec.structs.replace(last, outcome=Outcome.TAKEN_BACK, output_tokens=0)
    attempts = (first, msgspec.structs.replace(last, attempt=2))
    return msgspec.structs.replace(record, attempts=attempts)


async def insert(engine: AsyncEngine, *records: UsageRecord) -> int:
    """As the shipper does."""
    rows = [JournaledRecord(record, "gw-1", 7, seq) for seq, record in enumerate(records, 1)]
    async with engine.begin() as db:
        return await insert_batch(db, rows)


async def outcomes(engine: AsyncEngine) -> list[tuple[Any, ...]]:
    """Of all attempts, in order."""
    async with engine.connect() as db:
        statement = "SELECT attempt, outcome FROM usage_attempts ORDER BY started_at, attempt"
        return [tuple(row) for row in await db.execute(text(statement))]


async def test_an_attempt_ends_taken_back_and_a_request_does_not(engine: AsyncEngine) -> None:
    """In every partition. The request's cost and counts are those of the attempt that served it."""
    assert await insert(engine, twice_tried(LONG_AGO_MS), twice_tried()) == 2
    assert await outcomes(engine) == [(1, "taken_back"), (2, "completed")] * 2
    with pytest.raises(DBAPIError, match="usage_record_outcome_check"):
        await insert(engine, a_record(outcome=Outcome.TAKEN_BACK))


async def test_the_release_before_reads_them_as_refused(
    engine: AsyncEngine, database_url: str
) -> None:
    """Down and up with rows in the table: nothing is lost, and the check is that release's."""
    await insert(engine, twice_tried(LONG_AGO_MS), twice_tried())
    await downgrade(database_url, "0004")
    assert await outcomes(engine) == [(1, "refused"), (2, "completed")] * 2
    for attempt in (1, 2):
        with pytest.raises(DBAPIError, match=r"usage_attempt.*outcome_check"):
            async with engine.begin() as db:
                await db.execute(
                    text("UPDATE usage_attempt SET outcome = 'taken_back' WHERE attempt = :number"),
                    {"number": attempt},
                )
    await upgrade(database_url)
    assert await insert(engine, twice_tried()) == 1
