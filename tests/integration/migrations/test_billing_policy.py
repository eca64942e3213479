"""The billing policy as rows: the code's own table, and never another."""

from collections.abc import AsyncIterator

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine

from billing.domain.policy import POLICY_VERSIONS, PolicyRow, differences
from billing.postgres.policies import load_policies
from gateway.adapters.postgres import async_engine
from gateway.preflight import Status, check_policy


@pytest.fixture
async def engine(database_url: str) -> AsyncIterator[AsyncEngine]:
    """An engine on a fresh database."""
    made = async_engine(database_url)
    yield made
    await made.dispose()


async def test_postgres_and_the_code_have_one_table(engine: AsyncEngine) -> None:
    """Every version, every outcome, and no more: what finance reads is what was judged by."""
    async with engine.connect() as db:
        stored = await load_policies(db)
    assert stored == POLICY_VERSIONS
    assert differences(stored) == []


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE billing_policy SET with_output = false WHERE outcome = 'completed'",
        "DELETE FROM billing_policy",
        "TRUNCATE billing_policy",
        "INSERT INTO billing_policy VALUES (1, 'completed', false, false)",
    ],
)
async def test_a_version_is_never_changed(engine: AsyncEngine, statement: str) -> None:
    """Bills that name it stay explained by it."""
    with pytest.raises(DBAPIError, match=r"append-only|billing_policy_pkey"):
        async with engine.begin() as db:
            await db.execute(text(statement))
    async with engine.connect() as db:
        assert await load_policies(db) == POLICY_VERSIONS


async def test_weir_check_tells_a_difference(engine: AsyncEngine, database_url: str) -> None:
    """A table that somebody changed behind the trigger's back, or that lacks a row; a version of a
    later release is none."""
    later = "INSERT INTO billing_policy VALUES (99, 'completed', true, true), (99, 'x', true, true)"
    async with engine.begin() as db:
        await db.execute(text(later))
    finding = await check_policy(database_url)
    assert (finding.status, finding.detail) == (Status.OK, f"version {max(POLICY_VERSIONS)}")
    async with engine.begin() as db:
        await db.execute(text("ALTER TABLE billing_policy DISABLE TRIGGER USER"))
        await db.execute(
            text("UPDATE billing_policy SET without_output = true WHERE outcome = 'timed_out'")
        )
        await db.execute(text("DELETE FROM billing_policy WHERE outcome = 'refused'"))
    finding = await check_policy(database_url)
    assert finding.status is Status.FAIL
    assert finding.detail == "not this release's: 1 timed_out, 1 refused"
    async with engine.connect() as db:
        stored = await load_policies(db)
    assert stored[99]["x"] == PolicyRow(with_output=True, without_output=True)
