from pathlib import Path

from gateway.adapters.journal.framing import Damage, encode_frame
from gateway.adapters.journal.reader import STRETCH_BYTES, quarantine, read_stretch, read_whole
from gateway.adapters.journal.segment import SegmentKey
from gateway.adapters.journal.storage import Storage

KEY = SegmentKey(1, 0)


def written(directory: Path, data: bytes) -> Path:
    path = KEY.path(directory)
    path.write_bytes(data)
    return path


def test_a_file_is_read_in_stretches(tmp_path: Path) -> None:
    """Many records come back in order over several reads, none longer than a stretch and a bit."""
    payloads = [bytes([number]) * 9_000 for number in range(200)]
    path = written(tmp_path, b"".join(map(encode_frame, payloads)))
    stretches = list(read_whole(path))
    assert [frame.payload for stretch in stretches for frame in stretch.frames] == payloads
    assert len(stretches) > 5
    assert all(stretch.end - stretch.frames[0].offset <= STRETCH_BYTES for stretch in stretches)


def test_a_record_longer_than_a_stretch(tmp_path: Path) -> None:
    """A long record is read whole, and so is what follows it."""
    payloads = [b"\x01", bytes(3 * STRETCH_BYTES), b"\x02"]
    path = written(tmp_path, b"".join(map(encode_frame, payloads)))
    found = [frame.payload for stretch in read_whole(path) for frame in stretch.frames]
    assert found == payloads


def test_damage_longer_than_a_stretch(tmp_path: Path) -> None:
    """A long damaged stretch hides nothing behind it."""
    first, second = encode_frame(b"\x01"), encode_frame(b"\x02")
    path = written(tmp_path, first + b"\xaa" * (2 * STRETCH_BYTES) + second)
    stretches = list(read_whole(path))
    assert [frame.payload for each in stretches for frame in each.frames] == [b"\x01", b"\x02"]
    damages = [damage for each in stretches for damage in each.damages]
    assert damages == [Damage(len(first), len(first) + 2 * STRETCH_BYTES)]


def test_nothing_is_read_beyond_what_is_durable(tmp_path: Path) -> None:
    """Records after the limit are not there yet."""
    frame = encode_frame(b"\x01")
    path = written(tmp_path, frame * 3)
    assert len(read_stretch(path, 0, 2 * len(frame)).frames) == 2
    assert read_stretch(path, 2 * len(frame), 2 * len(frame)).frames == []


def test_damage_is_put_aside_once(tmp_path: Path) -> None:
    """The damaged bytes are copied beside the segment, which stays as it is."""
    path = written(tmp_path, b"0123456789")
    assert quarantine(tmp_path, Storage(), KEY, Damage(2, 6))
    assert not quarantine(tmp_path, Storage(), KEY, Damage(2, 6))
    assert (tmp_path / f"{path.name}.damaged-2").read_bytes() == b"2345"
    assert path.read_bytes() == b"0123456789"
