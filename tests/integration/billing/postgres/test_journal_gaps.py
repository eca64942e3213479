from collections.abc import AsyncIterator

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from billing.postgres.journal_gaps import Gap, load_gaps
from billing.postgres.journal_watermarks import Watermark
from billing.postgres.shipments import Shipment, WatermarkMoved, store
from gateway.adapters.postgres import async_engine


@pytest.fixture
async def engine(database_url: str) -> AsyncIterator[AsyncEngine]:
    """An engine on a migrated database of this test's own."""
    opened = async_engine(database_url)
    yield opened
    await opened.dispose()


def lost(*gaps: Gap, before: Watermark = Watermark()) -> Shipment:  # noqa: B008 - immutable
    """A shipment of nothing but numbers that are lost."""
    count = sum(gap.last_seq - gap.first_seq + 1 for gap in gaps)
    after = before._replace(seq=before.seq + count, missing_count=before.missing_count + count)
    return Shipment(
        gateway_id="gw-1", boot=7, rows=(), letters=(), gaps=gaps, before=before, after=after
    )


async def found(engine: AsyncEngine) -> dict[int, list[Gap]]:
    async with engine.connect() as db:
        return await load_gaps(db, "gw-1")


async def test_lost_numbers_go_with_their_watermark(engine: AsyncEngine) -> None:
    """One by one, and only where the shipment goes in; another time, as after a restore, once."""
    first = lost(Gap(1, 1), Gap(2, 4))
    await store(engine, first)
    with pytest.raises(WatermarkMoved):
        await store(engine, lost(Gap(5, 9)))
    assert await found(engine) == {7: [Gap(1, 1), Gap(2, 4)]}
    async with engine.begin() as db:
        await db.execute(text("DELETE FROM journal_watermark"))
    await store(engine, first)
    await store(engine, lost(Gap(5, 5), before=first.after))
    assert await found(engine) == {7: [Gap(1, 1), Gap(2, 4), Gap(5, 5)]}
