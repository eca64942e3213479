import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from servers import eventually
from shipping import DRAIN_MS, ids, rows, serve
from sqlalchemy.ext.asyncio import AsyncEngine
from usage_examples import a_record, an_admission

from gateway.adapters.journal import Journal
from gateway.adapters.journal.segment import list_segments
from gateway.adapters.postgres import async_engine
from gateway.adapters.shipper import Shipper


@pytest.fixture
async def engine(database_url: str) -> AsyncIterator[AsyncEngine]:
    """An engine on a migrated database of this test's own."""
    opened = async_engine(database_url)
    yield opened
    await opened.dispose()


async def test_a_directory_away_for_a_moment(engine: AsyncEngine, tmp_path: Path) -> None:
    """The reader that misses it shows it, is behind, and goes on by itself when it is back."""
    # The writer looks after its file at commits only, so that this is the shipper's own doing.
    journal = await Journal.open(tmp_path / "journal", heal_interval_ms=600_000)
    shipper = Shipper(engine, journal, interval_ms=100)
    shipper.start()
    assert await shipper.drain(DRAIN_MS)
    records = await serve(journal, 3)
    away = journal.directory.rename(tmp_path / "away")
    await eventually(lambda: shipper.last_error == "JournalIncomplete")
    await eventually(lambda: shipper.lag_seconds > 0.05)
    assert not shipper.caught_up
    away.rename(journal.directory)
    await eventually(lambda: shipper.caught_up)
    assert await rows(engine) == ids(records)
    await eventually(lambda: shipper.last_error is None)
    assert shipper.lag_seconds == 0.0
    await shipper.stop()
    await journal.close()


async def test_deleted_segments_are_shipped(engine: AsyncEngine, tmp_path: Path) -> None:
    """Records not shipped when their file was deleted become rows all the same."""
    journal = await Journal.open(tmp_path / "journal", heal_interval_ms=20)
    records = await serve(journal, 20)
    for key in list_segments(journal.directory):
        key.path(journal.directory).unlink()
    shipper = Shipper(engine, journal)
    shipper.start()
    assert await shipper.drain(DRAIN_MS)
    assert await rows(engine) == ids(records)
    assert shipper.missing_records == 0
    await shipper.stop()
    await journal.close()


async def test_an_end_without_a_directory_goes_to_postgres(
    engine: AsyncEngine, tmp_path: Path
) -> None:
    """With the whole directory gone what runs still ends, and the lag shows what waits."""
    journal = await Journal.open(tmp_path / "journal", heal_interval_ms=20)
    shipper = Shipper(engine, journal)
    shipper.start()
    assert await shipper.drain(DRAIN_MS)
    running = an_admission()
    await journal.admitted(running)
    shutil.rmtree(journal.directory)
    await eventually(lambda: journal.failing)
    await asyncio.wait_for(journal.ended(a_record(running)), 10)
    assert await rows(engine) == ids([a_record(running)])
    await shipper.stop()
    await journal.close()
