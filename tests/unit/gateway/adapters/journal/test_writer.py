import asyncio
import errno
from pathlib import Path

import pytest
from servers import eventually
from usage_examples import FailingStorage, a_record, an_admission

from gateway.adapters.journal import Journal
from gateway.errors import Overloaded


async def failed_journal(directory: Path, storage: FailingStorage, code: str) -> Journal:
    """A journal whose file has just failed on an admission that nobody got."""
    journal = await Journal.open(directory, storage=storage, heal_interval_ms=20)
    setattr(storage, code, errno.EIO)
    with pytest.raises(Overloaded) as caught:
        await journal.admitted(an_admission())
    assert caught.value.code == "metering_unavailable"
    assert journal.failing
    return journal


@pytest.mark.parametrize("code", ["write_errno", "sync_errno"])
async def test_admissions_are_refused_until_the_disk_heals(tmp_path: Path, code: str) -> None:
    """A failed write or sync refuses admissions, and the journal comes back by itself."""
    storage = FailingStorage()
    journal = await failed_journal(tmp_path, storage, code)
    with pytest.raises(Overloaded):
        await journal.admitted(an_admission())
    setattr(storage, code, 0)
    await eventually(lambda: not journal.failing, what="the heal")
    await journal.admitted(an_admission())
    await journal.close()


async def test_an_end_waits_for_the_heal(tmp_path: Path) -> None:
    """What ends while the file has failed is held, shown as spare, and durable once it returns."""
    storage = FailingStorage()
    journal = await Journal.open(tmp_path, storage=storage, heal_interval_ms=20)
    admission = an_admission()
    await journal.admitted(admission)
    storage.sync_errno = errno.EIO
    ending = asyncio.create_task(journal.ended(a_record(admission)))
    await eventually(journal.spare, what="a spare end")
    assert not ending.done()
    assert journal.spare() == [a_record(admission)]
    storage.sync_errno = 0
    await asyncio.wait_for(ending, 5)
    assert journal.spare() == []
    await journal.close()
    again = await Journal.open(tmp_path)
    assert again.recovered.lost == ()
    await again.close()


async def test_an_end_that_postgres_has_returns(tmp_path: Path) -> None:
    """Released from outside, the waiting end returns although the file is still bad."""
    storage = FailingStorage()
    journal = await Journal.open(tmp_path, storage=storage, heal_interval_ms=20)
    admission = an_admission()
    await journal.admitted(admission)
    storage.sync_errno = errno.EIO
    ending = asyncio.create_task(journal.ended(a_record(admission)))
    await eventually(journal.spare, what="a spare end")
    journal.release_spare([admission.request_id])
    await asyncio.wait_for(ending, 5)
    assert journal.failing
    await journal.close()


async def test_closing_on_a_dead_disk_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """An end that no file and no database took is an error to its caller and a line in the log."""
    storage = FailingStorage()
    journal = await Journal.open(tmp_path, storage=storage, heal_interval_ms=20)
    admission = an_admission()
    await journal.admitted(admission)
    storage.sync_errno = errno.EIO
    ending = asyncio.create_task(journal.ended(a_record(admission)))
    await eventually(journal.spare, what="a spare end")
    await journal.close()
    with pytest.raises(Overloaded):
        await asyncio.wait_for(ending, 5)
    assert "1 ends in memory only" in caplog.text


async def test_a_bug_refuses_instead_of_hanging(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Should the committer itself break, admissions are refused and ends are kept."""
    journal = await Journal.open(tmp_path)
    admission = an_admission()
    await journal.admitted(admission)

    def broken(*_: object) -> None:
        raise KeyError("bug")

    monkeypatch.setattr(journal._writer._committer, "commit", broken)
    with pytest.raises(Overloaded):
        await asyncio.wait_for(journal.admitted(an_admission()), 5)
    assert journal.failing
    ending = asyncio.create_task(journal.ended(a_record(admission)))
    await eventually(journal.spare, what="a spare end")
    journal.release_spare([admission.request_id])
    await asyncio.wait_for(ending, 5)
    await journal.close()


async def test_what_one_turn_submits_is_one_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many requests a turn of the loop admits or ends: one write, one sync, one waking."""
    storage = FailingStorage()
    journal = await Journal.open(tmp_path, storage=storage)
    changed, woken = journal._writer._changed, list[int]()
    wake = changed.notify

    def counted() -> None:
        woken.append(1)
        wake()

    monkeypatch.setattr(changed, "notify", counted)
    for count in (64, 1, 300):
        before = storage.syncs
        woken.clear()
        await asyncio.gather(*(journal.admitted(an_admission()) for _ in range(count)))
        assert (storage.syncs - before, len(woken)) == (1, 1)
    await journal.close()


async def test_closing_takes_what_was_submitted_in_the_same_turn(tmp_path: Path) -> None:
    """Nothing that was submitted hangs or is lost; what comes later is an error at once."""
    journal = await Journal.open(tmp_path)
    entries = [an_admission() for _ in range(20)]
    waiting = [asyncio.ensure_future(journal.admitted(each)) for each in entries]
    await asyncio.sleep(0)  # each has submitted, and nothing was handed over yet
    await journal.close()
    await asyncio.wait_for(asyncio.gather(*waiting), 5)
    with pytest.raises(RuntimeError):
        await journal.ended(a_record(entries[0]))
    again = await Journal.open(tmp_path)
    assert set(again.recovered.lost) == set(entries)
    await again.close()
