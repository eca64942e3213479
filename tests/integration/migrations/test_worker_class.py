"""Workers that the release before stored, in a database of this one, and back."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from alembic.script import ScriptDirectory
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.adapters.postgres import async_engine
from gateway.administration import Administration
from gateway.domain.tenant import Model, RequestClass, Worker
from gateway.migrate import _config, downgrade, upgrade

ME = "cli:test"
MODEL = Model(id="m", context_tokens=2048, max_output_tokens=512)


def before() -> str:
    """The revision under the one that adds the class."""
    for each in ScriptDirectory.from_config(_config()).walk_revisions():
        if "worker_class" in each.path:
            assert isinstance(each.down_revision, str)
            return each.down_revision
    raise AssertionError("no revision adds the class")


@pytest.fixture
async def engine(database_url: str) -> AsyncIterator[AsyncEngine]:
    """An engine on a migrated database of this test's own."""
    made = async_engine(database_url, pooled=False)
    yield made
    await made.dispose()


async def run(engine: AsyncEngine, statement: str) -> list[tuple[Any, ...]]:
    """A statement in a transaction of its own, and its rows."""
    async with engine.begin() as db:
        result = await db.execute(text(statement))
        return [tuple(row) for row in result] if result.returns_rows else []


async def test_a_worker_of_before_serves_both_and_so_it_does_afterwards(
    engine: AsyncEngine, database_url: str
) -> None:
    """The way back forgets the class, and nothing else."""
    administration = Administration(engine)
    await administration.register_model(ME, MODEL)
    old = Worker(id="old", model="m", url="http://h:1")
    await administration.register_worker(ME, old)
    await downgrade(database_url, before())
    await upgrade(database_url)
    assert (await administration.list_workers()).items == [old]
    reserved = Worker(id="w", model="m", url="http://h:2", request_class=RequestClass.BATCH)
    await administration.register_worker(ME, reserved)
    await downgrade(database_url, before())
    assert await run(engine, "SELECT id, url FROM worker ORDER BY id") == [
        ("old", "http://h:1"),
        ("w", "http://h:2"),
    ]


async def test_a_class_is_one_that_requests_have(engine: AsyncEngine) -> None:
    """Whoever writes it."""
    await Administration(engine).register_model(ME, MODEL)
    with pytest.raises(DBAPIError, match="worker_class_check"):
        await run(
            engine,
            "INSERT INTO worker (id, model, url, kind, engine, class)"
            " VALUES ('w', 'm', 'http://h', 'sglang', 'sglang', 'urgent')",
        )
