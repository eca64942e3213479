"""The journal whose files are taken away while it writes them."""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID

import pytest
from servers import eventually
from usage_examples import a_record, an_admission

from gateway.adapters.journal import Journal
from gateway.adapters.journal.backlog import Backlog, JournalIncomplete
from gateway.adapters.journal.segment import list_segments
from gateway.domain.lease import Admitted
from gateway.errors import Overloaded


@pytest.fixture
async def journal(tmp_path: Path) -> AsyncIterator[Journal]:
    """A journal that looks after its file all the time."""
    opened = await Journal.open(tmp_path / "journal", heal_interval_ms=20)
    yield opened
    await opened.close()


async def serve(journal: Journal, count: int) -> list[Admitted]:
    """So many requests from admission to end."""
    served = [an_admission() for _ in range(count)]
    for each in served:
        await journal.admitted(each)
        await journal.ended(a_record(each))
    return served


def remove_segments(directory: Path) -> None:
    for key in list_segments(directory):
        key.path(directory).unlink()


def ends_in(journal: Journal) -> list[UUID]:
    """The request ids of every end that can be read, in order."""
    backlog = Backlog(journal)
    backlog.seek({})
    found: list[UUID] = []
    while (batch := backlog.read(1000)) is not None:
        assert batch.missing_count == 0
        found += [entry.body.request_id for entry in batch.ended]
        backlog.accept(batch)
    assert backlog.place == (journal.durable.key.boot, journal.durable.seq)
    return found


async def test_deleted_segments_are_written_again(journal: Journal) -> None:
    """The open file still holds what its name has lost: without any request, all of it is on the
    disk again under its name, and a new boot goes on."""
    served = await serve(journal, 5)
    boot = journal.boot
    remove_segments(journal.directory)
    await eventually(lambda: journal.boot > boot, what="a new boot")
    served += await serve(journal, 2)
    assert ends_in(journal) == [each.request_id for each in served]


async def test_nothing_is_durable_in_a_deleted_file(tmp_path: Path) -> None:
    """The admission that finds its file deleted is refused, not taken for durable."""
    journal = await Journal.open(tmp_path, heal_interval_ms=60_000)
    served = await serve(journal, 1)
    remove_segments(tmp_path)
    with pytest.raises(Overloaded):
        await journal.admitted(an_admission())
    await eventually(lambda: not journal.failing, what="the heal")
    assert ends_in(journal) == [each.request_id for each in served]
    await journal.close()


async def test_another_file_under_the_name_is_no_journal(journal: Journal) -> None:
    """A copy put in the segment's place gives way to what was written."""
    served = await serve(journal, 3)
    boot, path = journal.boot, journal.durable.key.path(journal.directory)
    copy = path.with_suffix(".copy")
    shutil.copy(path, copy)
    copy.rename(path)
    await eventually(lambda: journal.boot > boot, what="a new boot")
    assert ends_in(journal) == [each.request_id for each in served]


async def test_a_directory_moved_away_refuses_until_it_is_back(journal: Journal) -> None:
    """Admissions are refused, an end waits, and with the directory all is there again."""
    served = await serve(journal, 3)
    running = an_admission()
    await journal.admitted(running)
    away = journal.directory.with_name("away")
    journal.directory.rename(away)
    await eventually(lambda: journal.failing, what="the failure")
    with pytest.raises(Overloaded):
        await journal.admitted(an_admission())
    ending = asyncio.create_task(journal.ended(a_record(running)))
    await eventually(journal.spare, what="a spare end")
    away.rename(journal.directory)
    await asyncio.wait_for(ending, 5)
    assert ends_in(journal) == [each.request_id for each in [*served, running]]


async def test_a_directory_made_anew_gets_what_was_lost(journal: Journal) -> None:
    """Deleted whole and made again, it holds the segment that was open."""
    served = await serve(journal, 3)
    shutil.rmtree(journal.directory)
    await eventually(lambda: journal.failing, what="the failure")
    os.mkdir(journal.directory, 0o700)
    await eventually(lambda: not journal.failing, what="the heal")
    assert ends_in(journal) == [each.request_id for each in served]


async def test_what_cannot_be_put_back_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A journal that closes without its directory says that records are lost."""
    journal = await Journal.open(tmp_path / "journal", heal_interval_ms=20)
    await serve(journal, 1)
    shutil.rmtree(journal.directory)
    await journal.close()
    assert "closed without its file" in caplog.text


async def test_a_missing_file_is_not_the_end(tmp_path: Path) -> None:
    """Who reads where a file is missing is told so, before and after it has found its place."""
    journal = await Journal.open(tmp_path / "journal", heal_interval_ms=20)
    backlog = Backlog(journal)
    backlog.seek({})
    await serve(journal, 1)
    shutil.rmtree(journal.directory)
    with pytest.raises(JournalIncomplete):
        backlog.read(10)
    with pytest.raises(JournalIncomplete):
        backlog.seek({})
    await journal.close()
