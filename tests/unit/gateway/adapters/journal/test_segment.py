import errno
import os
from pathlib import Path

import pytest
from usage_examples import FailingStorage

from gateway.adapters.journal.entries import SegmentHeader, decode
from gateway.adapters.journal.framing import encode_frame, scan
from gateway.adapters.journal.segment import Segment, SegmentKey, list_segments
from gateway.adapters.journal.storage import Storage

HEADER = SegmentHeader(gateway_id="gw-1", boot=1, number=0, first_seq=1)


def test_a_segment_begins_with_its_header(tmp_path: Path) -> None:
    """What is created and appended lies in the file in that order, and nothing else once sealed."""
    segment = Segment.create(tmp_path, Storage(), HEADER, reserve_bytes=5000)
    segment.append(encode_frame(b"\x01"))
    assert segment.path.stat().st_size > segment.end
    segment.seal()
    data = segment.path.read_bytes()
    frames = scan(data).frames
    assert decode(frames[0].payload) == HEADER
    assert [frame.payload for frame in frames[1:]] == [b"\x01"]
    assert len(data) == segment.end


def test_segments_are_listed_in_order(tmp_path: Path) -> None:
    """By boot, then by number; other files are not segments."""
    keys = [
        SegmentKey(9, 0),
        SegmentKey(10, 0),
        SegmentKey(10, 1),
        SegmentKey(1_795_000_000_000, 0),
    ]
    for key in reversed(keys):
        key.path(tmp_path).touch()
    for name in ("identity.json", "lock", f"{keys[0].path(tmp_path).name}.damaged-40"):
        (tmp_path / name).touch()
    assert list_segments(tmp_path) == keys


@pytest.mark.parametrize("call", ["write_errno", "sync_errno", "reserve_errno"])
def test_a_segment_appears_whole_or_not_at_all(tmp_path: Path, call: str) -> None:
    """Where its birth fails at any step, no file is left, and the next attempt works."""
    storage = FailingStorage()
    setattr(storage, call, errno.EIO)
    with pytest.raises(OSError, match="error"):
        Segment.create(tmp_path, storage, HEADER, reserve_bytes=100)
    assert list(tmp_path.iterdir()) == []
    Segment.create(tmp_path, Storage(), HEADER).seal()
    assert list_segments(tmp_path) == [SegmentKey(1, 0)]


def test_little_space_is_taken_exactly(tmp_path: Path) -> None:
    """Where the generous reservation does not fit, the needed one is tried before giving up."""

    class Nearly(Storage):
        def reserve(self, descriptor: int, offset: int, length: int) -> None:
            if length > 100_000:
                raise OSError(errno.ENOSPC, "full")
            super().reserve(descriptor, offset, length)

    segment = Segment.create(tmp_path, Nearly(), HEADER)
    segment.reserve(50_000)
    with pytest.raises(OSError, match="full"):
        segment.reserve(500_000)
    segment.seal()


def test_reserving_never_touches_what_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a reservation writes zeros, they lie behind the records, also where records have
    outgrown what was reserved."""

    def refuse(*_: int) -> None:
        raise OSError(errno.EOPNOTSUPP, "not here")

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    monkeypatch.setattr("gateway.adapters.journal.segment.RESERVE_STEP_BYTES", 10)
    segment = Segment.create(tmp_path, Storage(), HEADER)
    frames = [encode_frame(bytes([number]) * 300) for number in range(6)]
    for frame in frames:
        segment.append(frame)
    segment.reserve(1000)
    segment.append(frames[0])
    segment.seal()
    found = scan(segment.path.read_bytes())
    assert [frame.payload for frame in found.frames[1:]] == [
        *(bytes([number]) * 300 for number in range(6)),
        bytes(300),
    ]
