"""Real processes killed with SIGKILL: what was acknowledged is there, once."""

from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from uuid import UUID

import pytest
from journal_kills import Acknowledged, journaling
from servers import TEMPLATE, fresh_database, make_template, running_stores
from sqlalchemy import text

from backend.embedded import running
from gateway.adapters.journal import Journal
from gateway.adapters.journal.entries import AdmittedEntry, EndedEntry, decode
from gateway.adapters.journal.reader import read_whole
from gateway.adapters.journal.segment import list_segments
from gateway.adapters.postgres import async_engine
from gateway.adapters.shipper import Shipper

pytestmark = pytest.mark.fault


def kill_after(directory: Path, acknowledged: Acknowledged, lines: int, *arguments: str) -> None:
    """Let a process journal until it has said `lines` lines, then kill it with no warning."""
    with journaling(directory, *arguments) as process:
        acknowledged.read(process, lines)
        process.kill()
        acknowledged.read(process, 0)


def journaled(directory: Path) -> tuple[Counter[UUID], Counter[UUID], Counter[str]]:
    """Admissions, ends and the outcomes of these, over all segments."""
    admitted: Counter[UUID] = Counter()
    ended: Counter[UUID] = Counter()
    outcomes: Counter[str] = Counter()
    for key in list_segments(directory):
        for stretch in read_whole(key.path(directory)):
            assert stretch.damages == []
            for frame in stretch.frames:
                record = decode(frame.payload)
                if isinstance(record, AdmittedEntry):
                    admitted[record.body.request_id] += 1
                elif isinstance(record, EndedEntry):
                    ended[record.body.request_id] += 1
                    outcomes[record.body.outcome] += 1
    return admitted, ended, outcomes


async def test_a_kill_loses_nothing_that_returned(tmp_path: Path) -> None:
    """Killed in the middle of appends, over and over: every append that returned is there, every
    admission has exactly one end, and a last recovery finds nothing left to do."""
    acknowledged = Acknowledged()
    for lines in (1, 40, 300, 1100, 2500):
        kill_after(tmp_path, acknowledged, lines)
    journal = await Journal.open(tmp_path)
    lost = {entry.request_id for entry in journal.recovered.lost}
    assert journal.recovered.damaged_records == 0
    await journal.close()
    admitted, ended, outcomes = journaled(tmp_path)
    assert len(acknowledged.ended) > 1500
    assert acknowledged.admitted <= admitted.keys()
    assert acknowledged.ended <= ended.keys()
    assert acknowledged.ended.isdisjoint(lost)
    assert ended == admitted
    assert set(ended.values()) == {1}
    assert 0 < outcomes["gateway_lost"] <= 5 * 40
    again = await Journal.open(tmp_path)
    assert again.recovered.lost == ()
    await again.close()


async def test_gateway_and_postgres_killed_in_turn(tmp_path: Path) -> None:
    """With either one killed under load, in the end each admitted request is exactly one row, and
    each that was acknowledged as ended says so."""
    directory, acknowledged = tmp_path / "journal", Acknowledged()
    with running_stores(tmp_path / "stores") as stores, ExitStack() as restarted:
        await make_template(stores.postgres)
        url = await fresh_database(stores.postgres, template=TEMPLATE)
        server = stores.postgres_process
        for lines in (400, 700, 1000):
            with journaling(directory, url) as process:
                acknowledged.read(process, lines)
                server.kill()
                server.wait()
                acknowledged.read(process, lines)
                server = restarted.enter_context(running(stores.postgres))
                acknowledged.read(process, lines)
                process.kill()
                acknowledged.read(process, 0)
        engine = async_engine(url)
        journal = await Journal.open(directory)
        shipper = Shipper(engine, journal)
        shipper.start()
        assert await shipper.drain(30_000)
        await shipper.stop()
        async with engine.connect() as db:
            found = await db.execute(text("SELECT request_id, outcome FROM usage_records"))
            rows = {row[0]: row[1] for row in found}
            count = await db.scalar(text("SELECT count(*) FROM usage_records"))
            buried = await db.scalar(text("SELECT count(*) FROM usage_dead_letter"))
            missing = await db.scalar(text("SELECT sum(missing_count) FROM journal_watermark"))
        await engine.dispose()
        await journal.close()
    admitted, _, _ = journaled(directory)
    assert (count, buried, missing) == (len(admitted), 0, 0)
    assert rows.keys() == admitted.keys()
    assert acknowledged.admitted <= rows.keys()
    assert {rows[request_id] for request_id in acknowledged.ended} == {"completed"}
    assert len(acknowledged.ended) > 2000
