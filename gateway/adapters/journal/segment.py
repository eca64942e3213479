"""One file of the journal: its name, its birth under a header, appends into reserved space."""

import contextlib
import errno
import logging
import os
import re
from pathlib import Path
from typing import NamedTuple, Self

from gateway.adapters.journal.entries import SegmentHeader, encode_header
from gateway.adapters.journal.framing import encode_frame
from gateway.adapters.journal.storage import Storage

RESERVE_STEP_BYTES = 1024 * 1024
COPY_STEP_BYTES = 1024 * 1024
logger = logging.getLogger(__name__)
_NAME = re.compile(r"(\d{16})-(\d{8})\.journal")


class SegmentKey(NamedTuple):
    """A segment's place in the journal's order."""

    boot: int
    number: int

    def path(self, directory: Path) -> Path:
        """The file that holds it."""
        return directory / f"{self.boot:016d}-{self.number:08d}.journal"


def list_segments(directory: Path) -> list[SegmentKey]:
    """All segments of a directory, oldest first."""
    names = (_NAME.fullmatch(path.name) for path in directory.iterdir())
    return sorted(SegmentKey(int(name[1]), int(name[2])) for name in names if name)


class Segment:
    """The segment that is being written. `end` is where the next record goes."""

    def __init__(self, key: SegmentKey, path: Path, descriptor: int, storage: Storage) -> None:
        self.key = key
        self.path = path
        self.end = 0
        self._descriptor = descriptor
        self._storage = storage
        self._reserved_to = 0
        self._named = False

    @classmethod
    def create(
        cls,
        directory: Path,
        storage: Storage,
        header: SegmentHeader,
        *,
        entries: bytes = b"",
        reserve_bytes: int = 0,
    ) -> Self:
        """A new segment with its header and first `entries` durable, and room for `reserve_bytes`.

        It appears under its name whole or not at all. Raises OSError; where even that cannot be
        undone a file is left which the caller must not let be the last one.
        """
        key = SegmentKey(header.boot, header.number)
        path = key.path(directory)
        draft = path.with_suffix(".draft")
        with contextlib.suppress(FileNotFoundError):
            draft.unlink()
        segment = cls(key, path, storage.create(draft), storage)
        try:
            data = encode_frame(encode_header(header)) + entries
            segment.reserve(len(data) + reserve_bytes)
            segment.append(data)
            storage.rename(draft, path)
            storage.sync_directory(directory)
            segment._named = True
        except OSError:
            segment.abandon()
            for name in (draft, path):
                with contextlib.suppress(OSError):
                    storage.remove(name)
            raise
        return segment

    def reserve(self, length: int) -> None:
        """Have disk space for `length` bytes after `end`, or raise OSError."""
        needed = self.end + length
        if needed <= self._reserved_to:
            return
        # Where an end was longer than the room kept for it, `end` has passed what is reserved; what
        # is written must not be reserved again, since a reservation may write zeros.
        start = max(self.end, self._reserved_to)
        generous = needed + RESERVE_STEP_BYTES
        try:
            self._storage.reserve(self._descriptor, start, generous - start)
            self._reserved_to = generous
        except OSError:
            self._storage.reserve(self._descriptor, start, needed - start)
            self._reserved_to = needed

    def append(self, data: bytes) -> None:
        """Write whole frames at the end and sync. After an OSError nothing more must be appended.

        What lies in a file that has lost its name is not durable: ENOENT.
        """
        self._storage.write(self._descriptor, data, self.end)
        self._storage.sync(self._descriptor)
        if self._named and not self.at_its_path():
            raise OSError(errno.ENOENT, "the segment is no longer in its directory")
        self.end += len(data)

    def at_its_path(self) -> bool:
        """Whether the file is still the one under its name. Raises OSError."""
        return self._storage.is_at(self.path, self._descriptor)

    def put_back(self) -> None:
        """Have the name hold all up to `end` again, where it was deleted, moved away or replaced.

        Raises OSError where it cannot be written. What the open file no longer yields is lost, and
        logged.
        """
        if self.at_its_path():
            return
        draft = self.path.with_suffix(".draft")
        with contextlib.suppress(FileNotFoundError):
            draft.unlink()
        descriptor = self._storage.create(draft)
        try:
            self._copy_to(descriptor)
            self._storage.sync(descriptor)
        finally:
            os.close(descriptor)
        self._storage.rename(draft, self.path)
        self._storage.sync_directory(self.path.parent)
        logger.warning("journal segment %s was lost and is written again", self.path.name)

    def _copy_to(self, descriptor: int) -> None:
        position = 0
        while position < self.end:
            try:
                step = min(COPY_STEP_BYTES, self.end - position)
                piece = os.pread(self._descriptor, step, position)
            except OSError:
                piece = b""
            if not piece:
                lost = self.end - position
                logger.critical("journal segment %s: %d bytes are lost", self.path.name, lost)
                return
            self._storage.write(descriptor, piece, position)
            position += len(piece)

    def trim(self) -> None:
        """Give unused space back; an error only leaves zeros at the end."""
        with contextlib.suppress(OSError):
            self._storage.truncate(self._descriptor, self.end)

    def cut(self) -> None:
        """Have nothing after `end` on the disk. An error leaves what there is."""
        with contextlib.suppress(OSError):
            self._storage.truncate(self._descriptor, self.end)
            self._storage.sync(self._descriptor)

    def seal(self) -> None:
        """Trim and close."""
        self.trim()
        self.abandon()

    def abandon(self) -> None:
        """Close the file as it is."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
