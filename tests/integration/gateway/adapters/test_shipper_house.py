"""What a shipper does besides: months ahead, files behind, however much there is to ship."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from shipping import DRAIN_MS, ids, query, rows, serve
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine
from usage_examples import a_record, an_admission

from billing.domain.usage_record import UsageRecord
from billing.postgres.partitions import ensure_partitions
from gateway.adapters import shipper as shipping_module
from gateway.adapters.journal import Journal
from gateway.adapters.journal.segment import list_segments
from gateway.adapters.postgres import async_engine
from gateway.adapters.shipper import PARTITIONS_LATE_S, Shipper


@pytest.fixture
async def engine(database_url: str) -> AsyncIterator[AsyncEngine]:
    """An engine on a migrated database of this test's own."""
    opened = async_engine(database_url)
    yield opened
    await opened.dispose()


async def test_house_is_kept_while_there_is_always_more_to_ship(
    engine: AsyncEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two batches of one run, without losing the place when files go."""
    monkeypatch.setattr(shipping_module, "HOUSEKEEPING_INTERVAL_S", 0.0)
    journal = await Journal.open(tmp_path, segment_bytes=10_000)
    records = [record for _ in range(6) for record in await serve(journal, 30)]
    assert len(list_segments(tmp_path)) > 5
    shipper = Shipper(engine, journal, batch_rows=20, retention_hours=0)
    left: list[int] = []
    shipper.on_shipped = lambda _: left.append(len(list_segments(tmp_path)))
    await shipper._ship_all()
    assert len(left) > 5
    assert left[-1] < left[0] - 2
    assert await rows(engine) == ids(records)
    await journal.close()


async def test_months_begin_under_a_running_shipper(engine: AsyncEngine, tmp_path: Path) -> None:
    """Rows of months that have no partition yet lie in the net, which shows; they move when their
    month is made, and those that come meanwhile are there once."""
    journal = await Journal.open(tmp_path)
    shipper = Shipper(engine, journal, interval_ms=1, batch_rows=40)
    shipper.start()
    now = datetime.now(UTC)
    served: list[UsageRecord] = []

    async def serve_in(months: int) -> None:
        month = now.month - 1 + months
        first = datetime(now.year + month // 12, month % 12 + 1, 1, tzinfo=UTC)
        at_ms = int(first.timestamp() * 1000)
        for each in (at_ms - 1, at_ms):
            admission = an_admission(each)
            await journal.admitted(admission)
            record = a_record(admission)
            await journal.ended(record)
            served.append(record)

    await asyncio.gather(*(serve_in(months) for months in range(8) for _ in range(10)))
    assert await shipper.drain(DRAIN_MS)
    shipper.outstanding.look_soon()
    await shipper.outstanding.look()
    assert shipper.outstanding.stray_rows == 70
    more = [asyncio.create_task(serve_in(months)) for months in range(8) for _ in range(10)]
    for ahead in range(4, 8):
        async with engine.begin() as db:
            assert await ensure_partitions(db, ahead) == 2
    await asyncio.gather(*more)
    assert await shipper.drain(DRAIN_MS)
    assert await rows(engine) == ids(served)
    assert await query(engine, "SELECT count(*) FROM usage_record_default") == [(0,)]
    assert await query(engine, "SELECT count(*) FROM usage_attempt") == [(len(served),)]
    shipper.outstanding.look_soon()
    await shipper.outstanding.look()
    assert shipper.outstanding.stray_rows == 0
    await shipper.stop()
    await journal.close()


async def test_months_that_cannot_be_made_for_a_day_show(
    engine: AsyncEngine, tmp_path: Path
) -> None:
    """Shipping goes on, into the net; a day later it shows, until they can be made again."""
    rename = "ALTER FUNCTION {} (integer) RENAME TO {}"
    async with engine.begin() as db:
        await db.execute(text(rename.format("ensure_usage_partitions", "away")))
    journal = await Journal.open(tmp_path)
    shipper = Shipper(engine, journal)
    await serve(journal, 3)
    await shipper._ship_all()
    assert shipper.caught_up
    assert not shipper.partitions_late
    shipper._partitions_made_at -= PARTITIONS_LATE_S
    assert shipper.partitions_late
    async with engine.begin() as db:
        await db.execute(text(rename.format("away", "ensure_usage_partitions")))
    shipper._housekeeping_at = 0.0
    await shipper._ship_all()
    assert not shipper.partitions_late
    await journal.close()
