from itertools import pairwise

import hypothesis.strategies as st
import pytest
from hypothesis import given

from gateway.wire.sse import EventTooLong, SseReader, event

LINE = st.binary(max_size=12).filter(lambda b: b"\n" not in b and b"\r" not in b)
EVENTS = st.lists(st.lists(LINE, min_size=1, max_size=3), max_size=6)
NOISE = st.sampled_from([b"", b": keep-alive", b"event: x", b"id: 7", b"retry: 1", b"nonsense"])
ENDING = st.sampled_from([b"\n", b"\r\n", b"\r"])


def pieces_of(stream: bytes, cuts: list[int]) -> list[bytes]:
    """The stream cut at any bytes, empty pieces included."""
    places = sorted(cut % (len(stream) + 1) for cut in cuts)
    edges = [0, *places, len(stream)]
    return [stream[a:b] for a, b in pairwise(edges)]


def read_all(reader: SseReader, pieces: list[bytes]) -> list[bytes]:
    return [data for piece in pieces for data in reader.feed(piece)]


@given(
    events=EVENTS,
    noise=NOISE,
    ending=ENDING,
    space=st.booleans(),
    cuts=st.lists(st.integers(0, 10_000), max_size=20),
)
def test_events_are_the_same_wherever_the_bytes_are_cut(
    events: list[list[bytes]], noise: bytes, ending: bytes, space: bool, cuts: list[int]
) -> None:
    """Any line ending, any split: each event's data once, in order; comments and other fields
    never."""
    prefix = b"data: " if space else b"data:"
    stream = b""
    for lines in events:
        written = [noise] if noise else []
        # A value that begins with a space keeps it only behind the one that is stripped.
        written += [b"data: " + line if line.startswith(b" ") else prefix + line for line in lines]
        stream += ending.join([*written, b"", b""])
    expected = [b"\n".join(lines) for lines in events]
    assert read_all(SseReader(), pieces_of(stream, cuts)) == expected


@given(events=EVENTS, ending=ENDING)
def test_an_event_is_out_as_soon_as_its_last_byte_is_in(
    events: list[list[bytes]], ending: bytes
) -> None:
    """No event waits for the one after it."""
    reader = SseReader()
    for lines in events:
        stream = ending.join([*(b"data: " + line for line in lines), b"", b""])
        assert read_all(reader, [stream]) == [b"\n".join(lines)]


@given(cuts=st.lists(st.integers(0, 10_000), max_size=5), ending=ENDING)
def test_a_byte_order_mark_hides_no_event(cuts: list[int], ending: bytes) -> None:
    """One at the very beginning is skipped, however it is cut; another is part of its line, which
    is then no data."""
    mark = b"\xef\xbb\xbf"
    lines = [mark + b"data: a", b"", mark + b"data: b", b"data: " + mark, b"", b""]
    assert read_all(SseReader(), pieces_of(ending.join(lines), cuts)) == [b"a", mark]
    twice = mark + mark + b"data: a" + ending * 2
    assert read_all(SseReader(), pieces_of(twice, cuts)) == []


def test_an_unfinished_event_is_not_one() -> None:
    """A stream cut inside an event does not yield half of it."""
    assert read_all(SseReader(), [b'data: {"a":1}\n', b"data: {"]) == []


@given(sizes=st.lists(st.integers(1, 60), max_size=8), whole=st.booleans())
def test_the_bound_is_on_one_event(sizes: list[int], whole: bool) -> None:
    """Many small events never pass it, however they arrive; one long one does."""
    stream = b"".join(event(b"x" * size) for size in sizes)
    pieces = [stream] if whole else [stream[i : i + 1] for i in range(len(stream))]
    assert [len(data) for data in read_all(SseReader(70), pieces)] == sizes


@pytest.mark.parametrize(
    "stream",
    [
        b"data: " + b"x" * 100 + b"\n\n",
        b"data: " + b"x" * 100,
        b"data: 12345678901234567890\n" * 5 + b"\n",
    ],
)
@pytest.mark.parametrize("piece_bytes", [1, 7, 1000])
def test_a_long_event_is_refused_before_it_is_kept(stream: bytes, piece_bytes: int) -> None:
    """One line or many, finished or not: memory is bounded."""
    pieces = [stream[i : i + piece_bytes] for i in range(0, len(stream), piece_bytes)]
    with pytest.raises(EventTooLong):
        read_all(SseReader(70), pieces)


@given(data=st.binary(max_size=60).filter(lambda b: b"\n" not in b and b"\r" not in b))
def test_what_is_written_is_read_back(data: bytes) -> None:
    """An event as the gateway writes it."""
    assert read_all(SseReader(), [event(data)]) == [data]
