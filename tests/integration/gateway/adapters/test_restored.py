"""Postgres put back to an earlier state under gateways that go on: nothing that only they have is
given up."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from reaping import DAY_MS, GONE_MS, Graves, a_gateway, graves, reaped
from shipping import DRAIN_MS, ids, rows, serve
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine
from usage_examples import a_record, an_admission

from billing.postgres.shipments import WatermarkMoved
from gateway.adapters import held_watermarks
from gateway.adapters import shipper as shipping_module
from gateway.adapters.journal import Journal
from gateway.adapters.journal.segment import list_segments
from gateway.adapters.shipper import Shipper
from gateway.domain.presence import Heartbeat

ENDED = ("completed", False, 12, 20, "engine_final", ["reaped"])


@pytest.fixture
async def system(database_url: str, redis_url: str) -> AsyncIterator[Graves]:
    """Empty stores of this test's own."""
    async with graves(database_url, redis_url) as made:
        yield made


async def forget(engine: AsyncEngine, *tables: str) -> None:
    """Postgres is as it was before these had anything."""
    async with engine.begin() as db:
        for table in tables:
            await db.execute(text(f"DELETE FROM {table}"))


async def test_copies_are_kept_whose_rows_are_gone(system: Graves) -> None:
    """INV-5: a restore to before the rows were written, just as nobody waits for their gateway any
    more. They are written again, and the copies stay until they are final."""
    gone, ended = a_gateway(), an_admission()
    await system.copied(gone, a_record(ended))
    await system.last_seen(gone, 2 * GONE_MS, Heartbeat(1, 2, 0, 0))
    reaper = system.reaper()
    await reaped(reaper)
    assert await system.rows() == {ended.request_id: ENDED}
    await forget(system.engine, "usage_provisional", "usage_attempt", "usage_record")
    await system.gone_for(gone, DAY_MS)
    await reaped(reaper)
    assert await system.rows() == {ended.request_id: ENDED}
    assert await system.copies.names(gone) == {ended.request_id}
    assert gone in await system.gateways.standings()


async def test_a_gateway_that_has_nothing_to_do_ships_again(
    system: Graves, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No connection breaks and nothing new is recorded: it looks by itself."""
    monkeypatch.setattr(held_watermarks, "LOOK_INTERVAL_S", 0.2)
    monkeypatch.setattr(shipping_module, "LOOK_INTERVAL_S", 0.1)
    journal = await Journal.open(tmp_path)
    shipper = Shipper(system.engine, journal)
    shipper.start()
    records = await serve(journal, 30)
    assert await shipper.drain(DRAIN_MS)
    await forget(system.engine, "usage_attempt", "usage_record", "journal_watermark")
    async with asyncio.timeout(10):
        while await rows(system.engine) != ids(records):  # noqa: ASYNC110 - SQL
            await asyncio.sleep(0.05)
    await shipper.stop()
    await journal.close()


async def test_no_file_is_deleted_that_postgres_lacks(
    system: Graves, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it is past its time, or in the way: what is remembered of Postgres is no reason."""
    monkeypatch.setattr(held_watermarks, "LOOK_INTERVAL_S", 3_600.0)
    journal = await Journal.open(tmp_path, segment_bytes=10_000, bytes_max=100_000)
    shipper = Shipper(system.engine, journal, retention_hours=0)
    shipper._housekeeping_at = float("inf")
    records = []
    while not journal.needs_space:
        await shipper._ship_all()
        records += await serve(journal, 2)
    segments = list_segments(tmp_path)
    known = dict(shipper._watermarks or {})
    await forget(system.engine, "usage_attempt", "usage_record", "journal_watermark")
    for keep_house_at in (float("inf"), 0.0):
        shipper._housekeeping_at = keep_house_at
        with pytest.raises(WatermarkMoved):
            await shipper._look_after(known)
    assert list_segments(tmp_path) == segments
    shipper.start()
    assert await shipper.drain(DRAIN_MS)
    assert await rows(system.engine) == ids(records)
    await shipper.stop()
    await journal.close()
