"""What of a journal is not shipped: a place in its segments, from which batches are read."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Protocol

from gateway.adapters.journal.batch import Durable
from gateway.adapters.journal.entries import (
    EndedEntry,
    SegmentHeader,
    UndecodableRecord,
    decode_to_ship,
)
from gateway.adapters.journal.framing import Damage, Frame
from gateway.adapters.journal.numbering import before_first_seq, last_seq
from gateway.adapters.journal.reader import quarantine, read_stretch
from gateway.adapters.journal.segment import SegmentKey, list_segments
from gateway.adapters.journal.storage import Storage

logger = logging.getLogger(__name__)
STRETCHES_MAX = 8
"""A batch is read from at most so many stretches, whatever it holds: memory stays bounded."""


class JournalIncomplete(OSError):
    """What is durable cannot be read back now: a file is missing, or ends too early."""


class Readable(Protocol):
    """A journal as its reader sees it."""

    @property
    def directory(self) -> Path: ...

    @property
    def durable(self) -> Durable: ...

    @property
    def storage(self) -> Storage: ...


@dataclass
class Unreadable:
    """A whole record of another version: `source` is its place."""

    source: str
    payload: bytes


@dataclass
class Batch:
    """A contiguous run of one boot's records, those after `first_seq` up to `seq`."""

    boot: int
    key: SegmentKey
    offset: int
    first_seq: int
    seq: int
    ended: list[EndedEntry] = field(default_factory=list)
    unreadable: list[Unreadable] = field(default_factory=list)
    admitted_count: int = 0
    missing_count: int = 0
    """Numbers that the disk has lost."""
    gaps: list[tuple[int, int]] = field(default_factory=list)
    """Which those are: the first and the last of each run of them."""
    last_at_ms: int | None = None
    """When the last of them was written, by what it says."""
    complete: bool = False
    """Whether it reaches the end of what was durable when it was read."""


class Backlog:
    """A place in the journal. Not for concurrent use; all methods read files and block."""

    def __init__(self, journal: Readable) -> None:
        self._journal = journal
        self._last_seqs: dict[SegmentKey, int] = {}
        self._seen: dict[int, int] = {}
        self._shipped: dict[int, int] = {}
        self._rest: dict[tuple[SegmentKey, int], list[Frame]] = {}
        """Records that lie there, read and not taken into a batch: of one place at most."""
        self.damaged_stretches = 0
        """Stretches put aside by this reader."""
        self._key = journal.durable.key
        self._offset = 0
        self._seq = 0

    @property
    def place(self) -> tuple[int, int]:
        """Boot and sequence number up to which all is shipped."""
        return self._key.boot, self._seq

    def count(self) -> int:
        """Records that are durable and not shipped."""
        durable = self._journal.durable
        ends = self._seen | {durable.key.boot: durable.seq}
        return sum(
            max(0, seq - self._shipped.get(boot, 0))
            for boot, seq in ends.items()
            if boot >= self._key.boot
        )

    def seek(self, shipped: Mapping[int, int]) -> int:
        """Go to the first record that is not shipped, by the sequence number of each boot.

        Returns how many unshipped records, seen before, the files of earlier boots no longer
        hold. Raises JournalIncomplete.
        """
        with _missing_is_an_error():
            return self._seek(shipped)

    def _seek(self, shipped: Mapping[int, int]) -> int:
        durable = self._journal.durable
        segments = [key for key in list_segments(self._journal.directory) if key <= durable.key]
        if durable.key not in segments:
            raise FileNotFoundError(durable.key.path(self._journal.directory).name)
        self._shipped, before, self._seen = dict(shipped), self._seen, {}
        self._rest = {}
        unshipped: list[SegmentKey] = []
        for boot, group in groupby(segments, key=lambda key: key.boot):
            keys = list(group)
            current = boot == durable.key.boot
            self._seen[boot] = durable.seq if current else self._last_seq(keys[-1])
            if not unshipped and (current or shipped.get(boot, 0) < self._seen[boot]):
                unshipped = keys
        boot = unshipped[0].boot
        self._key = self._segment_with(unshipped, shipped.get(boot, 0) + 1)
        self._offset, self._seq = 0, shipped.get(boot, 0)
        return sum(
            max(0, seq - max(shipped.get(boot, 0), self._seen.get(boot, 0)))
            for boot, seq in before.items()
            if boot != durable.key.boot
        )

    def read(self, rows_max: int, *, after: Batch | None = None) -> Batch | None:
        """The next records, at most `rows_max` ends among them; None where all that is durable is
        shipped. Those after a batch that is being shipped meanwhile, if that is given: None then
        says only that nothing was found. Raises JournalIncomplete."""
        while True:
            with _missing_is_an_error():
                batch = self._read_batch(rows_max, after)
            if batch.seq > batch.first_seq:
                return batch
            if after is None:
                self.accept(batch)
            else:
                after = batch
            if batch.complete:
                return None

    def _read_batch(self, rows_max: int, after: Batch | None) -> Batch:
        batch = Batch(self._key.boot, self._key, self._offset, self._seq, self._seq)
        if after is not None:
            batch = Batch(after.boot, after.key, after.offset, after.seq, after.seq)
        for _ in range(STRETCHES_MAX):
            durable = self._journal.durable
            self._seen[durable.key.boot] = durable.seq
            if not self._read_stretch(batch, durable, rows_max):
                if batch.key >= durable.key:
                    batch.complete = batch.seq >= durable.seq
                    if not batch.complete and batch.seq == batch.first_seq:
                        raise JournalIncomplete(batch.key.path(self._journal.directory).name)
                    break
                following = self._following(batch.key)
                if following.boot != batch.boot:
                    if batch.seq > batch.first_seq:
                        break
                    start = self._shipped.get(following.boot, 0)
                    batch = Batch(following.boot, following, 0, start, start)
                batch.key, batch.offset = following, 0
            if len(batch.ended) >= rows_max:
                break
        return batch

    def accept(self, batch: Batch) -> None:
        """The batch is shipped: go on after it."""
        self._key, self._offset, self._seq = batch.key, batch.offset, batch.seq
        self._shipped[batch.boot] = batch.seq

    def _read_stretch(self, batch: Batch, durable: Durable, rows_max: int) -> bool:
        """Take records into the batch; False where its segment holds no more."""
        frames = self._rest.pop((batch.key, batch.offset), None)
        if frames is None:
            frames = self._frames(batch, durable)
        taken = _take_all(batch, frames, rows_max)
        self._rest = {(batch.key, batch.offset): frames[taken:]} if taken < len(frames) else {}
        return bool(frames)

    def _frames(self, batch: Batch, durable: Durable) -> list[Frame]:
        limit = durable.end if batch.key == durable.key else None
        path = batch.key.path(self._journal.directory)
        stretch = read_stretch(path, batch.offset, limit)
        for damage in stretch.damages:
            self.damaged_stretches += self._put_aside(batch.key, damage)
        return stretch.frames

    def _put_aside(self, key: SegmentKey, damage: Damage) -> bool:
        try:
            return quarantine(self._journal.directory, self._journal.storage, key, damage)
        except FileNotFoundError:
            raise
        except OSError as error:
            # On a full disk nothing can be put aside; it lies in the segment still, and whatever
            # follows must be shipped all the same.
            logger.error("journal: a damaged stretch is not put aside (%s)", error.strerror)
            return False

    def _following(self, key: SegmentKey) -> SegmentKey:
        later = (each for each in list_segments(self._journal.directory) if each > key)
        return next(later, self._journal.durable.key)

    def _last_seq(self, key: SegmentKey) -> int:
        """Last number of a boot that has ended, by its last segment."""
        if key not in self._last_seqs:
            self._last_seqs[key] = last_seq(key.path(self._journal.directory))
        return self._last_seqs[key]

    def _segment_with(self, keys: list[SegmentKey], seq: int) -> SegmentKey:
        """The last of a boot's segments that begins at or before `seq`."""
        for key in reversed(keys):
            before = before_first_seq(key.path(self._journal.directory))
            if before is not None and before < seq:
                return key
        return keys[0]


@contextmanager
def _missing_is_an_error() -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise JournalIncomplete(*error.args) from error


def _take_all(batch: Batch, frames: list[Frame], rows_max: int) -> int:
    """Take records into the batch until it has so many ends; returns how many were taken."""
    ended = batch.ended
    for taken, frame in enumerate(frames):
        if len(ended) >= rows_max:
            return taken
        batch.offset = frame.end
        try:
            record = decode_to_ship(frame.payload)
        except UndecodableRecord as error:
            _put_by(batch, frame, error.seq)
            continue
        if isinstance(record, SegmentHeader):
            _skip_to(batch, record.first_seq)
        elif record.seq == batch.seq + 1 or _number(batch, record.seq):
            batch.seq = record.seq
            if isinstance(record, EndedEntry):
                ended.append(record)
                batch.last_at_ms = record.body.ended_at_ms
            else:
                batch.admitted_count += 1
                batch.last_at_ms = record.body.admitted_at_ms
    return len(frames)


def _put_by(batch: Batch, frame: Frame, told: int | None) -> None:
    """A record that this version cannot read, with its number where that is legible."""
    seq = batch.seq + 1 if told is None else told
    if _number(batch, seq):
        batch.unreadable.append(Unreadable(f"{batch.boot}:{seq}", frame.payload))


def _number(batch: Batch, seq: int) -> bool:
    """Count the record of that number in; False where it is shipped already."""
    if seq <= batch.seq:
        return False
    if seq > batch.seq + 1:
        _skip_to(batch, seq)
    batch.seq = seq
    return True


def _skip_to(batch: Batch, seq: int) -> None:
    """Numbers before `seq` that were not met are lost."""
    missing = max(0, seq - batch.seq - 1)
    if missing:
        batch.gaps.append((batch.seq + 1, batch.seq + missing))
    batch.missing_count += missing
    batch.seq += missing
