import asyncio
import errno
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from postgres_proxy import PostgresProxy, postgres_proxy
from servers import eventually
from shipping import DRAIN_MS, ids, query, rows, serve, watermarks
from sqlalchemy.ext.asyncio import AsyncEngine
from usage_examples import FailingStorage, a_record, an_admission

from gateway.adapters.journal import Journal
from gateway.adapters.postgres import async_engine
from gateway.adapters.shipper import Shipper


@pytest.fixture
async def engine(database_url: str) -> AsyncIterator[AsyncEngine]:
    """An engine on a migrated database of this test's own."""
    opened = async_engine(database_url)
    yield opened
    await opened.dispose()


@pytest.fixture
async def proxy(database_url: str) -> AsyncIterator[PostgresProxy]:
    """A Postgres that can be taken away."""
    async with postgres_proxy(database_url) as opened:
        yield opened


async def test_postgres_away_and_back(
    engine: AsyncEngine, proxy: PostgresProxy, tmp_path: Path
) -> None:
    """While it is away requests go on, the lag shows and memory holds none of them; when it is
    back, all are there."""
    through = async_engine(proxy.url)
    journal = await Journal.open(tmp_path)
    shipper = Shipper(through, journal, interval_ms=1)
    shipper.start()
    records = await serve(journal, 50)
    assert await shipper.drain(DRAIN_MS)
    await proxy.refuse()
    records += await serve(journal, 200)
    await eventually(lambda: shipper.last_error is not None)
    records += await serve(journal, 200)
    assert not journal.failing
    assert not await shipper.drain(50)
    assert shipper.unshipped_records == 800
    await eventually(lambda: shipper.lag_seconds > 0.05)
    assert journal.spare() == []
    await proxy.start()
    assert await shipper.drain(DRAIN_MS)
    assert await rows(engine) == ids(records)
    assert shipper.last_error is None
    assert await watermarks(engine) == [(journal.boot, 900, 450, 450, 0)]
    await shipper.stop()
    await journal.close()
    await through.dispose()


async def test_who_drains_waits_for_no_interval_and_no_pause(
    engine: AsyncEngine, proxy: PostgresProxy, tmp_path: Path
) -> None:
    """M01: a gateway that is stopped ships what it has, however long it would have let it gather;
    and where Postgres came back just now, however long it would have waited for that."""
    through = async_engine(proxy.url)
    journal = await Journal.open(tmp_path)
    shipper = Shipper(through, journal, interval_ms=3_600_000)
    shipper.start()
    assert await shipper.drain(DRAIN_MS)
    records = await serve(journal, 5)
    assert await shipper.drain(DRAIN_MS)
    records += await serve(journal, 5)
    await proxy.refuse()
    assert not await shipper.drain(500)
    await proxy.start()
    assert await shipper.drain(DRAIN_MS)
    assert await rows(engine) == ids(records)
    await shipper.stop()
    await journal.close()
    await through.dispose()


async def test_m02_postgres_away_for_a_minutes_load(
    engine: AsyncEngine, proxy: PostgresProxy, tmp_path: Path
) -> None:
    """What 200 requests a second leave in 60 s, 12,000, waits in the journal's files: all rows and
    no other, once it is back."""
    through = async_engine(proxy.url)
    journal = await Journal.open(tmp_path)
    shipper = Shipper(through, journal)
    shipper.start()
    assert await shipper.drain(DRAIN_MS)
    await proxy.refuse()
    records = [record for _ in range(12) for record in await serve(journal, 1_000)]
    assert (shipper.unshipped_records, journal.spare()) == (24_000, [])
    await proxy.start()
    assert await shipper.drain(3 * DRAIN_MS)
    assert await rows(engine) == ids(records)
    assert await watermarks(engine) == [(journal.boot, 24_000, 12_000, 12_000, 0)]
    await shipper.stop()
    await journal.close()
    await through.dispose()


class LosingAnswers(PostgresProxy):
    """Passes a COMMIT on and loses the answer."""

    lost = 0

    async def _relay(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, *, sent_by_client: bool
    ) -> None:
        async def read(n: int = -1) -> bytes:
            data = await whole(n)
            if sent_by_client and b"COMMIT" in data and self.lost < 3:
                self.lost += 1
                sink.write(data)
                self.freeze()
                return b""
            return data

        whole = source.read
        source.read = read  # type: ignore[method-assign]  # the one place where bytes pass
        await super()._relay(source, sink, sent_by_client=sent_by_client)


async def test_an_unknown_commit_is_safe(
    engine: AsyncEngine, database_url: str, tmp_path: Path
) -> None:
    """Where the answer to a commit is lost, the shipment is neither lost nor doubled."""
    folder = tmp_path / "proxy"
    folder.mkdir()
    proxy = LosingAnswers(database_url, folder)
    await proxy.start()
    through = async_engine(proxy.url)
    journal = await Journal.open(tmp_path / "journal")
    records = await serve(journal, 300)
    shipper = Shipper(through, journal, interval_ms=1, batch_rows=100)
    shipper.start()
    for _ in range(3):
        before = proxy.lost
        await eventually(lambda before=before: proxy.lost > before)  # type: ignore[misc]
        await proxy.refuse()
        await proxy.start()
    assert await shipper.drain(DRAIN_MS)
    assert proxy.lost == 3
    assert await rows(engine) == ids(records)
    assert await watermarks(engine) == [(journal.boot, 600, 300, 300, 0)]
    await shipper.stop()
    await journal.close()
    await through.dispose()
    await proxy.refuse()


async def test_an_end_without_a_disk_goes_to_postgres(engine: AsyncEngine, tmp_path: Path) -> None:
    """With the journal's disk gone, what still runs is recorded in Postgres before it returns."""
    storage = FailingStorage()
    journal = await Journal.open(tmp_path, storage=storage, heal_interval_ms=50)
    shipper = Shipper(engine, journal)
    shipper.start()
    running = [an_admission() for _ in range(20)]
    await asyncio.gather(*(journal.admitted(each) for each in running))
    storage.sync_errno = errno.EIO
    records = [a_record(each) for each in running]
    await asyncio.wait_for(asyncio.gather(*(journal.ended(each) for each in records)), 10)
    assert await rows(engine) == ids(records)
    flags = await query(engine, "SELECT DISTINCT usage_flags FROM usage_record")
    assert [set(each) for (each,) in flags] == [{"sent_directly", *records[0].usage_flags}]
    assert journal.failing
    assert journal.spare() == []
    await shipper.stop()
    await journal.close()


async def test_an_end_without_disk_or_postgres_waits(
    engine: AsyncEngine, proxy: PostgresProxy, tmp_path: Path
) -> None:
    """With both gone it is kept in memory, and recorded when either is back, here Postgres."""
    storage = FailingStorage()
    through = async_engine(proxy.url)
    journal = await Journal.open(tmp_path, storage=storage, heal_interval_ms=50)
    shipper = Shipper(through, journal, interval_ms=1)
    shipper.start()
    admission = an_admission()
    await journal.admitted(admission)
    assert await shipper.drain(DRAIN_MS)
    await proxy.refuse()
    storage.sync_errno = errno.EIO
    ending = asyncio.create_task(journal.ended(a_record(admission)))
    await eventually(lambda: shipper.last_error is not None and journal.spare())
    assert not ending.done()
    assert shipper.lag_seconds > 0
    await proxy.start()
    await asyncio.wait_for(ending, 10)
    assert await rows(engine) == Counter([admission.request_id])
    await shipper.stop()
    await journal.close()
    await through.dispose()


async def test_after_a_heal_both_boots_are_shipped(engine: AsyncEngine, tmp_path: Path) -> None:
    """A journal that failed and went on under a new boot leaves one row for each request."""
    storage = FailingStorage()
    journal = await Journal.open(tmp_path, storage=storage, heal_interval_ms=20)
    shipper = Shipper(engine, journal, interval_ms=1)
    records = await serve(journal, 30)
    first = journal.boot
    admission = an_admission()
    await journal.admitted(admission)
    storage.sync_errno = errno.EIO
    ending = asyncio.create_task(journal.ended(a_record(admission)))
    await eventually(journal.spare)
    storage.sync_errno = 0
    await asyncio.wait_for(ending, 10)
    records += [a_record(admission), *await serve(journal, 30)]
    shipper.start()
    assert await shipper.drain(DRAIN_MS)
    assert await rows(engine) == ids(records)
    assert await watermarks(engine) == [(first, 61, 31, 30, 0), (journal.boot, 61, 30, 31, 0)]
    await shipper.stop()
    await journal.close()
