"""What the database itself refuses or does, whoever writes to it."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.adapters.postgres import async_engine

NEW_TENANT = """INSERT INTO tenant (id, name, currency, time_zone)
    VALUES (:id, 'A tenant', 'USD', 'UTC') RETURNING changed, limits_version"""


@pytest.fixture
async def engine(database_url: str) -> AsyncIterator[AsyncEngine]:
    """An engine on a fresh database."""
    made = async_engine(database_url)
    yield made
    await made.dispose()


async def one(engine: AsyncEngine, statement: str, **values: object) -> tuple[Any, ...]:
    """Run a statement in a transaction of its own and return its row."""
    async with engine.begin() as db:
        result = await db.execute(text(statement), values)
        return tuple(result.one()) if result.returns_rows else ()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE audit_log SET actor = 'someone else'",
        "DELETE FROM audit_log",
        "TRUNCATE audit_log",
    ],
)
async def test_the_audit_log_cannot_be_changed(engine: AsyncEngine, statement: str) -> None:
    """Neither its rows nor all of it: the database refuses, and the entry stays as it was."""
    await one(
        engine,
        """INSERT INTO audit_log (actor, action, subject_kind, subject_id)
        VALUES ('cli:me', 'tenant.create', 'tenant', 'acme')""",
    )
    with pytest.raises(DBAPIError, match="append-only"):
        await one(engine, statement)
    assert await one(engine, "SELECT actor FROM audit_log") == ("cli:me",)


@pytest.mark.parametrize("table", ["tenant", "api_key", "model", "worker", "hosted_provider"])
async def test_directory_rows_cannot_be_deleted(engine: AsyncEngine, table: str) -> None:
    """A gateway that follows changes would never learn of it."""
    with pytest.raises(DBAPIError, match="never deleted"):
        await one(engine, f"DELETE FROM {table}")


async def test_every_write_is_numbered(engine: AsyncEngine) -> None:
    """Also one by hand: a higher number than any before, in every table."""
    first, _ = await one(engine, NEW_TENANT, id="a")
    second, _ = await one(engine, NEW_TENANT, id="b")
    (third,) = await one(engine, "UPDATE tenant SET name = 'B' WHERE id = 'a' RETURNING changed")
    assert first < second < third


async def test_numbers_go_on_growing_after_an_older_backup(engine: AsyncEngine) -> None:
    """Where a restore has put the sequence back, the next number is still above all earlier."""
    before, version = await one(engine, NEW_TENANT, id="a")
    await one(engine, "SELECT setval('directory_change', 1)")
    after, _ = await one(engine, NEW_TENANT, id="b")
    assert after > before
    (changed_version,) = await one(
        engine,
        """UPDATE tenant SET limits = '{"tpm": 5}', limits_version = 1 WHERE id = 'a'
        RETURNING limits_version""",
    )
    assert changed_version > version


async def test_limits_version_grows_with_limits_alone(engine: AsyncEngine) -> None:
    """A change of the limits raises it by one at least, any other change leaves it."""
    _, version = await one(engine, NEW_TENANT, id="a")
    (renamed,) = await one(engine, "UPDATE tenant SET name = 'B' RETURNING limits_version")
    assert renamed == version
    (limited,) = await one(
        engine, """UPDATE tenant SET limits = '{"tpm": 5}' RETURNING limits_version"""
    )
    (again,) = await one(
        engine, """UPDATE tenant SET limits = '{"tpm": 6}' RETURNING limits_version"""
    )
    assert version < limited < again
