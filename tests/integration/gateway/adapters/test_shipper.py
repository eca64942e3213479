import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from uuid import UUID

import pytest
from servers import eventually
from shipping import DRAIN_MS, ids, query, rows, serve, watermarks
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine
from usage_examples import an_admission

from billing.domain.usage_record import UsageRecord
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


async def test_a_record_is_a_row_soon(engine: AsyncEngine, tmp_path: Path) -> None:
    """Without being asked, a record is in the view within a fraction of a second, and nothing is
    then left to do."""
    journal = await Journal.open(tmp_path)
    shipper = Shipper(engine, journal)
    shipper.start()
    await eventually(lambda: shipper.caught_up)
    began = time.monotonic()
    (record,) = await serve(journal, 1)
    assert shipper.unshipped_records > 0
    await eventually(lambda: shipper.caught_up)
    assert time.monotonic() - began < 1.0
    assert await rows(engine) == ids([record])
    assert await watermarks(engine) == [(journal.boot, 2, 1, 1, 0)]
    assert (shipper.unshipped_records, shipper.lag_seconds, shipper.last_error) == (0, 0.0, None)
    await shipper.stop()
    await journal.close()


async def test_every_record_once_under_load(engine: AsyncEngine, tmp_path: Path) -> None:
    """Thousands of requests over many segments and small batches: one row each."""
    journal = await Journal.open(tmp_path, segment_bytes=100_000)
    shipper = Shipper(engine, journal, interval_ms=5, batch_rows=37)
    shipper.start()
    records = [record for _ in range(6) for record in await serve(journal, 300)]
    assert await shipper.drain(DRAIN_MS)
    assert len(list_segments(tmp_path)) > 5
    assert await rows(engine) == ids(records)
    assert await watermarks(engine) == [(journal.boot, 3600, 1800, 1800, 0)]
    await shipper.stop()
    await journal.close()


async def test_a_restart_ships_what_was_left(engine: AsyncEngine, tmp_path: Path) -> None:
    """What one life did not ship the next one does, with what was running as gateway_lost."""
    journal = await Journal.open(tmp_path)
    records = await serve(journal, 20)
    running = an_admission()
    await journal.admitted(running)
    await journal.close()
    journal = await Journal.open(tmp_path)
    shipper = Shipper(engine, journal)
    shipper.start()
    assert await shipper.drain(DRAIN_MS)
    assert await rows(engine) == ids(records) + Counter([running.request_id])
    assert await query(
        engine,
        "SELECT request_id, billable, prompt_tokens FROM usage_records"
        " WHERE outcome = 'gateway_lost'",
    ) == [(running.request_id, False, 0)]
    await shipper.stop()
    await journal.close()


async def test_what_an_earlier_life_left_is_told_of(engine: AsyncEngine, tmp_path: Path) -> None:
    """Its records, each once and when Postgres has them, and none of this life's own."""
    journal = await Journal.open(tmp_path)
    records = await serve(journal, 5)
    await journal.close()
    journal = await Journal.open(tmp_path)
    shipper = Shipper(engine, journal, batch_rows=2)
    told: list[UsageRecord] = []
    shipper.on_late = told.extend
    shipper.start()
    await serve(journal, 3)
    assert await shipper.drain(DRAIN_MS)
    assert ids(told) == ids(records)
    await shipper.stop()
    await journal.close()


async def test_what_postgres_holds_is_told_of(engine: AsyncEngine, tmp_path: Path) -> None:
    """Rows and dead letters, each once and when it is there; a failing listener stops nothing."""
    journal = await Journal.open(tmp_path)
    shipper = Shipper(engine, journal, batch_rows=3)
    told: list[UUID] = []

    def listen(request_ids: Sequence[UUID]) -> None:
        told.extend(request_ids)
        raise ValueError("a bug of whoever listens")

    shipper.on_shipped = listen
    shipper.start()
    served = await serve(journal, 7) + await serve(journal, 1, output_tokens=-1)
    assert await shipper.drain(DRAIN_MS)
    assert Counter(told) == ids(served)
    assert (shipper.dead_letters, shipper.last_error) == (1, None)
    await shipper.stop()
    await journal.close()


async def test_replaying_all_segments_adds_nothing(engine: AsyncEngine, tmp_path: Path) -> None:
    """With the watermark gone, as after a restore, everything is shipped again: no row more, and
    the watermark is back where it was."""
    journal = await Journal.open(tmp_path, segment_bytes=20_000)
    records = await serve(journal, 100)
    for _ in range(2):
        shipper = Shipper(engine, journal)
        shipper.start()
        assert await shipper.drain(DRAIN_MS)
        assert await watermarks(engine) == [(journal.boot, 200, 100, 100, 0)]
        assert await rows(engine) == ids(records)
        await shipper.stop()
        async with engine.begin() as db:
            await db.execute(text("DELETE FROM journal_watermark"))
    await journal.close()


async def test_a_restore_under_a_running_gateway(engine: AsyncEngine, tmp_path: Path) -> None:
    """Postgres put back to an older state gets again what it has forgotten."""
    journal = await Journal.open(tmp_path)
    shipper = Shipper(engine, journal)
    shipper.start()
    records = await serve(journal, 30)
    assert await shipper.drain(DRAIN_MS)
    async with engine.begin() as db:
        await db.execute(text("DELETE FROM usage_attempt"))
        await db.execute(text("DELETE FROM usage_record"))
        await db.execute(text("DELETE FROM journal_watermark"))
    records += await serve(journal, 1)
    assert await shipper.drain(DRAIN_MS)
    assert await rows(engine) == ids(records)
    await shipper.stop()
    await journal.close()


async def test_two_gateways_side_by_side(engine: AsyncEngine, tmp_path: Path) -> None:
    """Each ships its own journal into the same tables, for the same tenants, at once."""
    journals = [await Journal.open(tmp_path / name) for name in ("a", "b")]
    shippers = [Shipper(engine, journal, interval_ms=1, batch_rows=10) for journal in journals]
    for shipper in shippers:
        shipper.start()
    served = await asyncio.gather(*(serve(journal, 400) for journal in journals))
    assert all(await asyncio.gather(*(shipper.drain(DRAIN_MS) for shipper in shippers)))
    assert await rows(engine) == ids(served[0] + served[1])
    assert Counter(
        row[0] for row in await query(engine, "SELECT gateway_id FROM usage_record")
    ) == Counter({journal.gateway_id: 400 for journal in journals})
    for shipper, journal in zip(shippers, journals, strict=True):
        await shipper.stop()
        await journal.close()


async def test_a_poisonous_record_blocks_nothing(engine: AsyncEngine, tmp_path: Path) -> None:
    """A record that Postgres refuses is counted and kept, the others and the next ones are rows."""
    journal = await Journal.open(tmp_path)
    shipper = Shipper(engine, journal)
    shipper.start()
    good = await serve(journal, 10)
    (bad,) = await serve(journal, 1, output_tokens=-1)
    good += await serve(journal, 10)
    assert await shipper.drain(DRAIN_MS)
    assert await rows(engine) == ids(good)
    assert shipper.dead_letters == 1
    assert await query(engine, "SELECT request_id, reason FROM usage_dead_letter") == [
        (bad.request_id, "23514 usage_record_counts_check")
    ]
    good += await serve(journal, 1)
    await eventually(lambda: shipper.outstanding.dead_letters == 1)
    await shipper.stop()
    await journal.close()


async def test_a_stopped_shipper_loses_nothing(engine: AsyncEngine, tmp_path: Path) -> None:
    """Cancelled again and again in the middle of its work, each record still is one row."""
    journal = await Journal.open(tmp_path)
    records = await serve(journal, 500)
    for step in range(12):
        shipper = Shipper(engine, journal, interval_ms=1, batch_rows=30)
        shipper.start()
        await asyncio.sleep(0.004 * step)
        await shipper.stop()
    shipper = Shipper(engine, journal)
    shipper.start()
    assert await shipper.drain(DRAIN_MS)
    assert await rows(engine) == ids(records)
    assert await watermarks(engine) == [(journal.boot, 1000, 500, 500, 0)]
    await shipper.stop()
    await journal.close()


async def test_old_shipped_segments_are_deleted(engine: AsyncEngine, tmp_path: Path) -> None:
    """Once shipped and past the retention a segment goes; what is being written stays."""
    journal = await Journal.open(tmp_path, segment_bytes=10_000)
    records = await serve(journal, 200)
    for _ in range(5):
        records += await serve(journal, 20)
    assert len(list_segments(tmp_path)) > 3
    for _ in range(2):
        shipper = Shipper(engine, journal, retention_hours=0)
        shipper.start()
        assert await shipper.drain(DRAIN_MS)
        await shipper.stop()
    assert list_segments(tmp_path) == [journal.durable.key]
    assert await rows(engine) == ids(records)
    await journal.close()
    await (await Journal.open(tmp_path)).close()


async def test_a_database_without_tables_is_waited_for(
    engine: AsyncEngine, empty_database_url: str, tmp_path: Path
) -> None:
    """Before the migration has run, nothing is lost and the reason shows."""
    empty = async_engine(empty_database_url)
    journal = await Journal.open(tmp_path)
    await serve(journal, 1)
    shipper = Shipper(empty, journal)
    shipper.start()
    await eventually(lambda: shipper.last_error is not None)
    assert shipper.last_error is not None
    assert "42P01" in shipper.last_error
    assert shipper.unshipped_records > 0
    await shipper.stop()
    await journal.close()
    await empty.dispose()
