from pathlib import Path

from usage_examples import a_record, an_admission

from gateway.adapters.journal.entries import (
    SegmentHeader,
    encode_body,
    encode_entry,
    encode_header,
)
from gateway.adapters.journal.framing import encode_frame
from gateway.adapters.journal.numbering import before_first_seq, last_seq

HEADER = SegmentHeader(gateway_id="gw-1", boot=1, number=1, first_seq=41)


def test_numbers_of_a_segment(tmp_path: Path) -> None:
    """Its header says where it begins, its last record where it ends."""
    path = tmp_path / "segment"
    entries = [
        encode_entry("admitted", 41, encode_body(an_admission())),
        encode_entry("ended", 42, encode_body(a_record())),
    ]
    path.write_bytes(b"".join(map(encode_frame, [encode_header(HEADER), *entries])))
    assert (before_first_seq(path), last_seq(path)) == (40, 42)


def test_a_segment_with_a_header_only(tmp_path: Path) -> None:
    """It ends where it begins."""
    path = tmp_path / "segment"
    path.write_bytes(encode_frame(encode_header(HEADER)))
    assert (before_first_seq(path), last_seq(path)) == (40, 40)


def test_an_illegible_segment(tmp_path: Path) -> None:
    """It says nothing."""
    path = tmp_path / "segment"
    path.write_bytes(b"no frame")
    assert (before_first_seq(path), last_seq(path)) == (None, 0)
