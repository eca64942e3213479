"""Reading segments back, a bounded stretch at a time, with what is damaged put aside."""

import logging
import os
from collections.abc import Iterator
from pathlib import Path

from gateway.adapters.journal.framing import Damage, Scan, scan
from gateway.adapters.journal.segment import SegmentKey
from gateway.adapters.journal.storage import Storage

STRETCH_BYTES = 256 * 1024
logger = logging.getLogger(__name__)


def read_stretch(path: Path, start: int, limit: int | None = None) -> Scan:
    """The next records of a segment from `start`, some 256 KiB of them, more only where one record
    or a damaged stretch is longer.

    `limit` is the end of what is durable; None reads to the end of the file. No frames means that
    no whole record is left before the limit. Raises OSError.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        end = os.fstat(descriptor).st_size if limit is None else limit
        wanted = STRETCH_BYTES
        while True:
            length = min(wanted, end - start)
            found = scan(_read(descriptor, start, length), base=start)
            if found.frames or length >= end - start:
                return found
            wanted *= 2
    finally:
        os.close(descriptor)


def read_whole(path: Path) -> Iterator[Scan]:
    """All stretches of a segment that nobody writes."""
    position = 0
    while (stretch := read_stretch(path, position)).frames:
        yield stretch
        position = stretch.end


def quarantine(directory: Path, storage: Storage, key: SegmentKey, damage: Damage) -> bool:
    """Copy a damaged stretch to a side file, for whoever investigates; the segment stays as it is.

    Returns whether it was new: finding it again changes nothing. Raises OSError.
    """
    source = key.path(directory)
    side = source.with_name(f"{source.name}.damaged-{damage.offset}")
    if side.exists():
        return False
    descriptor = os.open(source, os.O_RDONLY | os.O_CLOEXEC)
    try:
        data = _read(descriptor, damage.offset, damage.end - damage.offset)
    finally:
        os.close(descriptor)
    storage.replace(side, data)
    logger.error(
        "journal segment %s: %d bytes at %d are damaged and were quarantined",
        source.name,
        len(data),
        damage.offset,
    )
    return True


def _read(descriptor: int, start: int, length: int) -> bytes:
    pieces = []
    while length > 0:
        piece = os.pread(descriptor, length, start)
        if not piece:
            break
        pieces.append(piece)
        start, length = start + len(piece), length - len(piece)
    return b"".join(pieces)
