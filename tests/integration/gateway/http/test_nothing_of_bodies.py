"""Of what a client sends and an engine answers, nothing is stored in Postgres but counts."""

import json
from typing import Any

import engine_events as events
import pytest
from admin_api import AdminApi
from invoice_world import InvoiceWorld
from memory_gateway import MemoryGateway
from scripted_engine import Step
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from billing.domain.usage_record import UsageRecord
from gateway.errors import WorkerFailed

MARKER = "Xanadu-7f3a"
TOOL = {"type": "function", "function": {"name": MARKER, "parameters": {"type": "object"}}}
ASKED: dict[str, Any] = {
    "messages": [{"role": "user", "name": MARKER, "content": f"Tell me of {MARKER}."}],
    "tools": [TOOL],
    "user": MARKER,
    "metadata": {MARKER: MARKER},
    "stop": [MARKER],
}
ANSWERS: dict[str, list[Step]] = {
    "completed": [*events.answer([MARKER, " is far"])],
    "worker_failed": [
        events.role(),
        events.content(MARKER),
        json.dumps({"error": {"message": MARKER, "code": 500}}).encode(),
        WorkerFailed(MARKER),
    ],
}
STORED = {"usage_record": "acme", "usage_attempt": "w0", "audit_log": "acme"}
"""Something that a row of each of these has."""


async def served(answer: list[Step]) -> list[UsageRecord]:
    """The records of a request that has the marker wherever a client can put it, and whose engine
    was asked with it."""
    gateway = MemoryGateway(answer)
    await gateway.post(**ASKED, stream=True)
    assert MARKER.encode() in gateway.engine.streams[0].body
    return gateway.journal.records


async def tables_with(engine: AsyncEngine, words: str) -> set[str]:
    """Every table of which a row has the words, in whatever column, as text or as bytes."""
    tables = (
        "SELECT table_name FROM information_schema.tables"
        " WHERE table_schema = 'public' AND table_type = 'BASE TABLE'"
    )
    found = set()
    async with engine.connect() as db:
        for (table,) in (await db.execute(text(tables))).all():
            rows = f'SELECT 1 FROM "{table}" AS each WHERE each::text ~ :words LIMIT 1'
            sought = {"words": f"{words}|{words.encode().hex()}"}
            if (await db.execute(text(rows), sought)).first():
                found.add(table)
    return found


@pytest.mark.parametrize("outcome", ANSWERS)
async def test_b13_no_table_has_anything_of_a_prompt_or_an_answer(
    api: AdminApi, engine: AsyncEngine, outcome: str
) -> None:
    """B13: whether it was answered or the engine failed with the prompt in its error; what is to be
    stored is, and the search finds it."""
    books = InvoiceWorld(engine)
    await books.open()
    records = await served(ANSWERS[outcome])
    assert [each.outcome for each in records] == [outcome]
    await books.ship(records)
    assert await tables_with(engine, MARKER) == set()
    for table, words in STORED.items():
        found = await tables_with(engine, words)
        assert any(each.startswith(table) for each in found), (table, found)
    await books.use("2026-01-10T00:00:00Z", finish_reason=MARKER)
    assert await tables_with(engine, MARKER)
