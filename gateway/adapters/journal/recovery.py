"""What a directory still owes when its gateway comes back: requests admitted and never ended."""

import logging
import os
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

from gateway.adapters.journal.entries import (
    AdmittedEntry,
    Record,
    SegmentHeader,
    UndecodableRecord,
    decode,
)
from gateway.adapters.journal.reader import quarantine, read_stretch, read_whole
from gateway.adapters.journal.segment import SegmentKey, list_segments
from gateway.adapters.journal.storage import Storage
from gateway.domain.lease import Admitted

logger = logging.getLogger(__name__)


@dataclass
class Recovery:
    """What an earlier life of the gateway left behind."""

    open_requests: dict[UUID, Admitted] = field(default_factory=dict)
    """Admitted and not ended, oldest first."""
    gateway_id: str | None = None
    last_boot: int = 0
    damaged_records: int = 0
    """Stretches found damaged for the first time."""
    cut_bytes: int = 0
    """Length of the torn end that was cut, unused reserved space left out."""


def recover(directory: Path, storage: Storage) -> Recovery:
    """Make the journal whole: cut the last segment's torn end, put damage aside, and say what was
    open. Doing it twice finds nothing new. Raises OSError.

    Each segment begins with the list of requests open then, so the last one with a legible header
    says it all.
    """
    for draft in directory.glob("*.draft"):
        storage.remove(draft)
    found = Recovery()
    segments = list_segments(directory)
    if not segments:
        return found
    found.last_boot = segments[-1].boot
    found.cut_bytes = _cut_torn_end(segments[-1].path(directory), storage)
    for key in _from_last_header(directory, segments):
        _replay(directory, storage, key, found)
    return found


def _cut_torn_end(path: Path, storage: Storage) -> int:
    end = 0
    for stretch in read_whole(path):
        end = stretch.end
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        torn = _length_without_zeros(descriptor, end)
        if torn:
            logger.warning("journal segment %s: a torn end of %d bytes is cut", path.name, torn)
        storage.truncate(descriptor, end)
        # What is read here may have reached only the cache before the process was killed.
        storage.sync(descriptor)
    finally:
        os.close(descriptor)
    return torn


def _length_without_zeros(descriptor: int, start: int) -> int:
    """Bytes from `start` to the file's last byte that is not zero."""
    last = start
    position = start
    while piece := os.pread(descriptor, 1024 * 1024, position):
        if text := piece.rstrip(b"\0"):
            last = position + len(text)
        position += len(piece)
    return last - start


def _from_last_header(directory: Path, segments: list[SegmentKey]) -> list[SegmentKey]:
    for first in range(len(segments) - 1, -1, -1):
        frames = read_stretch(segments[first].path(directory), 0).frames
        if frames and isinstance(_decoded(frames[0].payload), SegmentHeader):
            return segments[first:]
    return segments


def _replay(directory: Path, storage: Storage, key: SegmentKey, found: Recovery) -> None:
    for stretch in read_whole(key.path(directory)):
        for damage in stretch.damages:
            found.damaged_records += quarantine(directory, storage, key, damage)
        for frame in stretch.frames:
            _apply(_decoded(frame.payload), found)


def _apply(record: Record | None, found: Recovery) -> None:
    if isinstance(record, SegmentHeader):
        found.gateway_id = record.gateway_id
        found.open_requests = {entry.request_id: entry for entry in record.open_requests}
    elif isinstance(record, AdmittedEntry):
        found.open_requests[record.body.request_id] = record.body
    elif record is not None:
        found.open_requests.pop(record.body.request_id, None)


def _decoded(payload: bytes) -> Record | None:
    try:
        return decode(payload)
    except UndecodableRecord:
        # The shipper puts it among the dead letters; here its request simply stays open.
        return None
