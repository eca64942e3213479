"""A disk that fails while ends are written, and books that are in order all the same."""

import asyncio
import errno
from typing import Any

import pytest
from broken_books import terms
from controlled_storage import ControlledStorage, Fault
from servers import eventually
from shipping import DRAIN_MS
from sqlalchemy import text
from usage_examples import a_record, an_admission

from billing.postgres.reconcile_journals import load_journals
from gateway.adapters.journal import Journal
from gateway.adapters.shipper import Shipper

EIO = Fault(errno.EIO)


async def serve_on_a_bad_disk(books: Any, *, stays: bool) -> None:
    """Two ends are written and their sync fails; they cannot be cut off again, at that moment or
    for as long as that file is there. Then all is written anew, and shipped."""
    disk = ControlledStorage()
    journal = await Journal.open(books.directory, storage=disk, heal_interval_ms=5)
    admissions = [an_admission() for _ in range(4)]
    await asyncio.gather(*(journal.admitted(each) for each in admissions))
    disk.faults = {"sync": EIO, "truncate": EIO, "create": EIO}
    ending = [asyncio.create_task(journal.ended(a_record(each))) for each in admissions[:2]]
    await eventually(lambda: journal.failing and len(journal.spare()) == 2, what="failure")
    disk.faults = {"truncate": EIO} if stays else {}
    await asyncio.wait_for(asyncio.gather(*ending), 5)
    assert not journal.failing
    disk.faults = {}
    await asyncio.gather(*(journal.ended(a_record(each)) for each in admissions[2:]))
    shipper = Shipper(books.engine, journal)
    shipper.start()
    assert await shipper.drain(DRAIN_MS)
    await shipper.stop()
    await journal.close()
    await books.roll_up()


@pytest.mark.parametrize(("stays", "twice"), [(False, 0), (True, 2)])
async def test_ends_that_a_bad_file_held_too(books: Any, stays: bool, twice: int) -> None:
    """They are rows once; where the file cannot be cut it is known that they were told twice."""
    await serve_on_a_bad_disk(books, stays=stays)
    view = await books.reconcile("--journal", str(books.directory))
    assert view["ok"]
    assert terms(view, "REC-1")["told_after_finality"] == twice
    assert terms(view, "REC-1")["rows"] == 10
    async with books.engine.connect() as db:
        (journal,) = await load_journals(db, count_rows=False)
        late = await db.scalar(text("SELECT count(*) FROM usage_late WHERE output_tokens <> 0"))
    assert late == 0
    assert sum(boot.admitted - boot.ended + boot.told_twice for boot in journal.boots) == 0
