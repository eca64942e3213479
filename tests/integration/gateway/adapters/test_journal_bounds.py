"""A journal that fills while Postgres is away, and what becomes of it then."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from servers import eventually
from shipping import DRAIN_MS, ids, rows, serve
from sqlalchemy.ext.asyncio import AsyncEngine

from billing.domain.usage_record import UsageRecord
from gateway.adapters.journal import Journal
from gateway.adapters.postgres import async_engine
from gateway.adapters.shipper import Shipper
from gateway.errors import Overloaded

BYTES_MAX = 200_000


@pytest.fixture
async def engine(database_url: str) -> AsyncIterator[AsyncEngine]:
    """An engine on a migrated database of this test's own."""
    opened = async_engine(database_url)
    yield opened
    await opened.dispose()


async def test_a_full_journal_serves_again_when_it_is_shipped(
    engine: AsyncEngine, tmp_path: Path
) -> None:
    """INV-5: at its bound it refuses; once Postgres has all, the young segments go, requests are
    admitted within a second without another one asking, and each that ended is one row."""
    journal = await Journal.open(
        tmp_path, segment_bytes=20_000, bytes_max=BYTES_MAX, heal_interval_ms=50
    )
    records: list[UsageRecord] = []
    with contextlib.suppress(Overloaded):
        while True:
            records += await serve(journal, 1)
    assert journal.failing
    shipper = Shipper(engine, journal, batch_rows=50)
    shipper.start()
    await eventually(lambda: not journal.failing, what="room for admissions")
    assert journal.bytes <= BYTES_MAX * 7 // 8
    for _ in range(150):  # more than fits: the oldest make way all the time
        # Few at once: with the space kept for their ends they fit into the eighth above the mark
        # from which room is made, also while the shipper only comes to make it.
        records += await serve(journal, 4)
        assert await shipper.drain(DRAIN_MS)
    assert journal.bytes <= BYTES_MAX
    assert await rows(engine) == ids(records)
    assert shipper.missing_records == 0
    await shipper.stop()
    await journal.close()
