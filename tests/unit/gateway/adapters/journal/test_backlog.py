import os
from pathlib import Path

import pytest
from usage_examples import FailingStorage, a_record, an_admission

from billing.domain.usage_record import UsageRecord
from gateway.adapters.journal.backlog import Backlog, Batch, JournalIncomplete
from gateway.adapters.journal.batch import Append, Durable
from gateway.adapters.journal.committer import Committer
from gateway.adapters.journal.entries import encode_body
from gateway.adapters.journal.identity import begin_boot, read_identity
from gateway.adapters.journal.segment import list_segments
from gateway.adapters.journal.storage import Storage


class Book:
    """A journal written by hand, without its thread."""

    def __init__(self, directory: Path, *, segment_bytes: int = 1 << 20) -> None:
        self.directory = directory
        self.segment_bytes = segment_bytes
        self.records: list[UsageRecord] = []
        self.reopen()

    def reopen(self) -> None:
        identity = begin_boot(
            self.directory, FailingStorage(), found=read_identity(self.directory), now_ms=1000
        )
        self.committer = Committer(
            self.directory, FailingStorage(), identity, segment_bytes=self.segment_bytes
        )
        self.committer.begin((), now_ms=1000)

    @property
    def storage(self) -> Storage:
        return Storage()

    @property
    def durable(self) -> Durable:
        return self.committer.durable

    def serve(self, count: int) -> None:
        """So many requests from admission to end."""
        for _ in range(count):
            admission = an_admission()
            record = a_record(admission)
            self.records.append(record)
            for append in (
                Append(admission.request_id, encode_body(admission), admission),
                Append(record.request_id, encode_body(record), None),
            ):
                self.committer.commit([append])


def shipped_by(backlog: Backlog, rows_max: int = 1000) -> list[Batch]:
    """Everything, batch by batch, each accepted."""
    batches = []
    while (batch := backlog.read(rows_max)) is not None:
        batches.append(batch)
        backlog.accept(batch)
    return batches


def records_of(batches: list[Batch]) -> list[UsageRecord]:
    return [entry.body for batch in batches for entry in batch.ended]


def sought(book: Book, shipped: dict[int, int] | None = None) -> Backlog:
    backlog = Backlog(book)
    backlog.seek(shipped or {})
    return backlog


def test_everything_is_read_once_in_order(tmp_path: Path) -> None:
    """Over segments and boots, every record comes exactly once, and the counts add up."""
    book = Book(tmp_path, segment_bytes=6000)
    book.serve(20)
    book.committer.seal()
    book.reopen()
    book.serve(15)
    assert len(list_segments(tmp_path)) > 4
    backlog = sought(book)
    assert backlog.count() == 70
    batches = shipped_by(backlog, rows_max=7)
    assert records_of(batches) == book.records
    assert all(len(batch.ended) <= 7 for batch in batches)
    assert all(
        batch.seq - batch.first_seq == batch.admitted_count + len(batch.ended) + batch.missing_count
        for batch in batches
    )
    assert backlog.count() == 0
    assert backlog.place == (book.durable.key.boot, book.durable.seq)


def test_reading_again_without_accepting_is_the_same(tmp_path: Path) -> None:
    """A batch that could not be shipped is read again as it was."""
    book = Book(tmp_path)
    book.serve(5)
    backlog = sought(book)
    assert backlog.read(3) == backlog.read(3)


@pytest.mark.parametrize("rows_max", [1, 7, 1000])
def test_reading_ahead_finds_the_same(tmp_path: Path, rows_max: int) -> None:
    """Over segments and boots, a batch read while the one before it is not accepted yet is the one
    that would have been read after; nothing counts as shipped for having been read."""
    book = Book(tmp_path, segment_bytes=6000)
    book.serve(20)
    book.committer.seal()
    book.reopen()
    book.serve(15)
    backlog, batches = sought(book), []
    place, batch = backlog.place, backlog.read(rows_max)
    while batch is not None:
        batches.append(batch)
        ahead = backlog.read(rows_max, after=batch)
        assert (backlog.place, backlog.count()) == (place, 70 - 2 * len(records_of(batches[:-1])))
        backlog.accept(batch)
        place, batch = backlog.place, ahead
    assert records_of(batches) == book.records
    assert backlog.read(rows_max) is None
    assert backlog.place == (book.durable.key.boot, book.durable.seq)


@pytest.mark.parametrize("done", [0, 1, 7, 30, 39, 40])
def test_a_restart_goes_on_after_the_watermark(tmp_path: Path, done: int) -> None:
    """Whatever number Postgres has, exactly the records after it follow."""
    book = Book(tmp_path, segment_bytes=6000)
    book.serve(20)
    batches = shipped_by(sought(book, {book.durable.key.boot: done}))
    assert records_of(batches) == book.records[done // 2 :]


def test_a_boot_that_is_shipped_is_passed_over(tmp_path: Path) -> None:
    """An earlier boot whose watermark is at its end is not read again."""
    book = Book(tmp_path)
    book.serve(4)
    first = book.durable
    book.committer.seal()
    book.reopen()
    book.serve(2)
    batches = shipped_by(sought(book, {first.key.boot: first.seq}))
    assert records_of(batches) == book.records[4:]
    assert {batch.boot for batch in batches} == {book.durable.key.boot}


def test_what_comes_later_is_found(tmp_path: Path) -> None:
    """At the end there is nothing, and then what was written meanwhile, also in a new segment."""
    book = Book(tmp_path, segment_bytes=3000)
    backlog = sought(book)
    assert backlog.read(100) is None
    for _ in range(6):
        book.serve(3)
        shipped_by(backlog)
        assert backlog.place == (book.durable.key.boot, book.durable.seq)


def test_a_damaged_record_is_counted_as_missing(tmp_path: Path) -> None:
    """A record that the disk has lost leaves a number that is accounted for, and the rest comes."""
    book = Book(tmp_path)
    book.serve(5)
    path = book.durable.key.path(tmp_path)
    data = bytearray(path.read_bytes())
    place = data.find(str(book.records[2].request_id).encode())
    place = data.find(str(book.records[2].request_id).encode(), place + 1)
    data[place] ^= 1
    path.write_bytes(bytes(data))
    backlog = sought(book)
    batches = shipped_by(backlog)
    assert records_of(batches) == book.records[:2] + book.records[3:]
    assert sum(batch.missing_count for batch in batches) == 1
    assert [gap for batch in batches for gap in batch.gaps] == [(6, 6)]
    assert backlog.damaged_stretches == 1
    assert backlog.place[1] == 10


def test_a_record_of_another_version_is_handed_on(tmp_path: Path) -> None:
    """What this version cannot read is kept whole under its number, and the rest comes."""
    book = Book(tmp_path)
    book.serve(1)
    stranger = an_admission()
    book.committer.commit([Append(stranger.request_id, b"\xa3new", None)])
    book.serve(1)
    batches = shipped_by(sought(book))
    assert records_of(batches) == book.records
    unreadable = [each for batch in batches for each in batch.unreadable]
    assert [each.source for each in unreadable] == [f"{book.durable.key.boot}:3"]
    assert b"\xa3new" in unreadable[0].payload


def test_a_segment_that_is_gone_is_accounted_for(tmp_path: Path) -> None:
    """A file that someone removed leaves a gap of known size, not a halt."""
    book = Book(tmp_path, segment_bytes=4000)
    book.serve(20)
    keys = list_segments(tmp_path)
    keys[1].path(tmp_path).unlink()
    batches = shipped_by(sought(book))
    missing = sum(batch.missing_count for batch in batches)
    assert missing > 0
    ((first, last),) = (gap for batch in batches for gap in batch.gaps)
    assert last - first + 1 == missing
    assert sum(batch.admitted_count + len(batch.ended) for batch in batches) == 40 - missing


def test_a_durable_end_that_cannot_be_read_is_not_the_end(tmp_path: Path) -> None:
    """A file that is shorter than what was durable is an error, not a journal that is shipped."""
    book = Book(tmp_path)
    book.serve(2)
    backlog = sought(book)
    os.truncate(book.durable.key.path(tmp_path), book.durable.end - 1)
    (batch,) = [backlog.read(100)]
    assert batch is not None
    assert (batch.seq, batch.complete) == (3, False)
    backlog.accept(batch)
    with pytest.raises(JournalIncomplete):
        backlog.read(100)


def test_the_last_file_of_an_earlier_boot_does_not_go_unnoticed(tmp_path: Path) -> None:
    """No later record shows its gap, so its records are counted as lost, once."""
    book = Book(tmp_path)
    book.serve(4)
    first = book.durable.key
    book.committer.seal()
    book.reopen()
    backlog = Backlog(book)
    assert backlog.seek({first.boot: 2}) == 0
    first.path(tmp_path).unlink()
    assert backlog.seek({first.boot: 2}) == 6
    assert backlog.seek({first.boot: 2}) == 0
    assert backlog.count() == 0
