"""What tests of the shipper share: serving through a journal, and what then lies in Postgres."""

import asyncio
from collections import Counter
from typing import Any
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine
from usage_examples import a_record, an_admission

from billing.domain.usage_record import UsageRecord
from gateway.serving.ports import UsageJournal

DRAIN_MS = 20_000


async def query(engine: AsyncEngine, statement: str) -> list[tuple[Any, ...]]:
    """The rows of a statement."""
    async with engine.connect() as db:
        return [tuple(row) for row in await db.execute(text(statement))]


async def rows(engine: AsyncEngine) -> Counter[UUID]:
    """How many rows each request has."""
    return Counter(row[0] for row in await query(engine, "SELECT request_id FROM usage_records"))


async def watermarks(engine: AsyncEngine) -> list[tuple[Any, ...]]:
    """Boot, number, and what it is made of, of every boot."""
    return await query(
        engine,
        "SELECT boot, seq, admitted_count, ended_count, missing_count FROM journal_watermark"
        " ORDER BY gateway_id, boot",
    )


async def serve(journal: UsageJournal, count: int, **changes: object) -> list[UsageRecord]:
    """So many requests at once, from admission to end."""

    async def one() -> UsageRecord:
        admission = an_admission()
        await journal.admitted(admission)
        record = a_record(admission, **changes)
        await journal.ended(record)
        return record

    return list(await asyncio.gather(*(one() for _ in range(count))))


def ids(records: list[UsageRecord]) -> Counter[UUID]:
    """Each record's request, once for each record."""
    return Counter(record.request_id for record in records)
