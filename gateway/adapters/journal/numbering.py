"""Which sequence numbers a segment holds."""

from pathlib import Path

from gateway.adapters.journal.entries import SegmentHeader, UndecodableRecord, decode
from gateway.adapters.journal.framing import Frame
from gateway.adapters.journal.reader import read_stretch, read_whole


def before_first_seq(path: Path) -> int | None:
    """The number before a segment's first, None where nothing is legible. Raises OSError."""
    frames = read_stretch(path, 0).frames
    return _seq_of(frames[0]) if frames else None


def last_seq(path: Path) -> int:
    """The last number up to the end of a segment that nobody writes. Raises OSError."""
    last = 0
    for stretch in read_whole(path):
        last = max(last, *(_seq_of(frame) for frame in stretch.frames))
    return last


def gateway_of(path: Path) -> str | None:
    """Whose journal a segment's header says it is; None where it is not legible. Raises OSError."""
    frames = read_stretch(path, 0).frames
    try:
        record = decode(frames[0].payload) if frames else None
    except UndecodableRecord:
        return None
    return record.gateway_id if isinstance(record, SegmentHeader) else None


def _seq_of(frame: Frame) -> int:
    """The number of a record; of a header, the last before it."""
    try:
        record = decode(frame.payload)
    except UndecodableRecord as error:
        return error.seq or 0
    return record.first_seq - 1 if isinstance(record, SegmentHeader) else record.seq
