"""What is remembered of gateways that were seen, and for how long."""

from collections.abc import AsyncIterator

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from billing.postgres.gateways_seen import forget_seen
from gateway.adapters.postgres import async_engine

SEEN = """
INSERT INTO gateway_seen
    (gateway_id, boot, durable_seq, open_count, shipped_seq, seen_at, recorded_at, closed_at)
VALUES ('g', :boot, 9, 0, 0, now(), now() - :days * interval '1 day',
    CASE WHEN :closed THEN now() - :days * interval '1 day' END)
"""
MARK = """
INSERT INTO journal_watermark
    (gateway_id, boot, seq, admitted_count, ended_count, missing_count)
VALUES ('g', :boot, :seq, :seq, 0, 0)
"""


@pytest.fixture
async def postgres(database_url: str) -> AsyncIterator[AsyncEngine]:
    """A database of this test's own."""
    engine = async_engine(database_url)
    yield engine
    await engine.dispose()


@pytest.mark.parametrize(
    ("shipped", "days", "closed", "is_kept"),
    [
        (9, 100, False, True),
        (9, 0.9, True, True),
        (9, 1.1, True, False),
        (8, 89, True, True),
        (8, 91, True, False),
        (8, 91, False, True),
    ],
    ids=["expected", "just closed", "closed", "lost", "lost long ago", "waited for"],
)
async def test_until_nobody_needs_it(
    postgres: AsyncEngine, shipped: int, days: float, closed: bool, is_kept: bool
) -> None:
    """The newest boot: as long as something is expected; then a day, or ninety where something
    never came. A second time it finds nothing more."""
    async with postgres.begin() as db:
        await db.execute(text(SEEN), {"boot": 2, "days": days, "closed": closed})
        await db.execute(text(MARK), {"boot": 2, "seq": shipped})
        assert [await forget_seen(db) for _ in range(2)] == [0 if is_kept else 1, 0]


@pytest.mark.parametrize(("shipped", "is_kept"), [(9, False), (8, True)])
async def test_a_boot_that_was_followed_by_another(
    postgres: AsyncEngine, shipped: int, is_kept: bool
) -> None:
    """Is not needed once it is in Postgres, however many there were; what it lost is."""
    async with postgres.begin() as db:
        for boot in range(1, 101):
            await db.execute(text(SEEN), {"boot": boot, "days": 0, "closed": False})
            await db.execute(text(MARK), {"boot": boot, "seq": shipped})
        await forget_seen(db)
        kept = await db.scalar(text("SELECT count(*) FROM gateway_seen"))
    assert kept == (100 if is_kept else 1)
