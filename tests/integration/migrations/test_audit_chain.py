"""Entries from before the chain are chained as they were, and the database holds to the chain."""

from collections.abc import AsyncIterator

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.adapters.postgres import async_engine
from gateway.administration import Administration, AuditFilters
from gateway.migrate import downgrade, upgrade

BEFORE = "0016"
ENTRY = """INSERT INTO audit_log (actor, action, subject_kind, subject_id, after)
    VALUES ('cli:old', 'key.create', 'key', 'k', '{"tenant_id": "acme"}')"""


@pytest.fixture
async def engine(database_url: str) -> AsyncIterator[AsyncEngine]:
    """An engine on a migrated database of this test's own."""
    made = async_engine(database_url, pooled=False)
    yield made
    await made.dispose()


async def write(engine: AsyncEngine, times: int) -> None:
    """So many entries, each in its own transaction, and after each one that is rolled back."""
    for _ in range(times):
        async with engine.begin() as db:
            await db.execute(text(ENTRY))
        async with engine.connect() as db:
            await db.execute(text(ENTRY))


async def ids(engine: AsyncEngine) -> list[int]:
    """Of all entries."""
    async with engine.connect() as db:
        return list(await db.scalars(text("SELECT id FROM audit_log ORDER BY id")))


async def test_what_was_there_is_chained_as_it_was(engine: AsyncEngine, database_url: str) -> None:
    """Its ids stay, with their gaps; what comes next follows; its tenant is found."""
    await downgrade(database_url, BEFORE)
    await write(engine, 3)
    assert await ids(engine) == [1, 3, 5]
    await upgrade(database_url)
    await write(engine, 2)
    assert await ids(engine) == [1, 3, 5, 6, 7]
    administration = Administration(engine)
    report = await administration.verify_audit()
    assert (report.checked, report.misfit) == (5, None)
    page = await administration.list_audit(filters=AuditFilters(tenant_id="acme"))
    assert len(page.items) == 5
    async with engine.connect() as db:
        with pytest.raises(DBAPIError, match="append-only"):
            await db.execute(text("UPDATE audit_log SET hash = hash"))


async def test_without_the_chain_ids_go_on(engine: AsyncEngine, database_url: str) -> None:
    """After a step down no id comes twice, and the step up again fits."""
    await write(engine, 3)
    await downgrade(database_url, BEFORE)
    await write(engine, 2)
    found = await ids(engine)
    assert (found[:3], len(set(found))) == ([1, 2, 3], 5)
    await upgrade(database_url)
    assert (await Administration(engine).verify_audit()).misfit is None
