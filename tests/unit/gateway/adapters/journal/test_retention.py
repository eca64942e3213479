import os
from pathlib import Path

import pytest
from usage_examples import a_record

from gateway.adapters.journal.batch import Durable
from gateway.adapters.journal.entries import SegmentHeader, encode_body, encode_entry, encode_header
from gateway.adapters.journal.framing import encode_frame
from gateway.adapters.journal.retention import delete_expired
from gateway.adapters.journal.segment import SegmentKey, list_segments

OLD_S = 1_000.0
KEYS = [SegmentKey(1, 0), SegmentKey(1, 1), SegmentKey(2, 0), SegmentKey(2, 1)]
FIRST_SEQS = {KEYS[0]: 1, KEYS[1]: 6, KEYS[2]: 1, KEYS[3]: 6}


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """Two boots of two segments each, all old: numbers 1 to 5 and 6 to 10 of the first, 1 to 5 of
    the second."""
    for key in KEYS:
        path = key.path(tmp_path)
        header = SegmentHeader(
            gateway_id="gw-1", boot=key.boot, number=key.number, first_seq=FIRST_SEQS[key]
        )
        last = encode_entry("ended", FIRST_SEQS[key] + 4, encode_body(a_record()))
        path.write_bytes(encode_frame(encode_header(header)) + encode_frame(last))
        os.utime(path, (OLD_S, OLD_S))
    return tmp_path


def kept(
    directory: Path,
    shipped: dict[int, int],
    *,
    oldest_open: tuple[int, int] | None = None,
    written_before_s: float = OLD_S + 1,
    bytes_to_free: int = 0,
) -> list[SegmentKey]:
    durable = Durable(KEYS[3], 100, 5, oldest_open)
    delete_expired(
        directory,
        durable,
        shipped,
        written_before_s=written_before_s,
        bytes_to_free=bytes_to_free,
    )
    return list_segments(directory)


def test_what_is_shipped_and_old_goes(journal: Path) -> None:
    """All but the one that is being written."""
    assert kept(journal, {1: 10, 2: 5}) == KEYS[3:]


def test_what_is_young_stays(journal: Path) -> None:
    """A restore of Postgres may still need it."""
    assert kept(journal, {1: 10, 2: 5}, written_before_s=OLD_S) == KEYS


def test_what_is_young_goes_for_space(journal: Path) -> None:
    """The oldest, as much as is asked for; never what is not shipped."""
    assert kept(journal, {1: 10, 2: 5}, written_before_s=0.0) == KEYS
    assert kept(journal, {1: 5}, bytes_to_free=1, written_before_s=0.0) == KEYS[1:]
    assert kept(journal, {1: 9}, bytes_to_free=10**9, written_before_s=0.0) == KEYS[1:]
    assert kept(journal, {1: 10, 2: 5}, bytes_to_free=10**9, written_before_s=0.0) == KEYS[3:]


def test_what_is_not_shipped_stays(journal: Path) -> None:
    """One record short of the end keeps the segment, and all after it."""
    assert kept(journal, {1: 9, 2: 5}) == KEYS[1:]


def test_where_a_request_is_open_it_stays(journal: Path) -> None:
    """The segment of the oldest running request's admission is kept."""
    assert kept(journal, {1: 10, 2: 5}, oldest_open=(1, 4)) == KEYS
    assert kept(journal, {1: 10, 2: 5}, oldest_open=(1, 6)) == KEYS[1:]
    assert kept(journal, {1: 10, 2: 5}, oldest_open=(1, 10)) == KEYS[1:]
    assert kept(journal, {1: 10, 2: 5}, oldest_open=(2, 6)) == KEYS[3:]
