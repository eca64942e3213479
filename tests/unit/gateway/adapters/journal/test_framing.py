import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.adapters.journal.framing import (
    FRAME_BYTES_MAX,
    HEADER_BYTES,
    MAGIC,
    Damage,
    encode_frame,
    scan,
)

texts = st.lists(st.text(max_size=60), min_size=1, max_size=8)
"""What a tenant or an engine could have put into records."""


def framed(words: list[str]) -> tuple[bytes, list[bytes], list[int]]:
    """All frames together, their payloads, and where each frame ends."""
    payloads = [msgspec.msgpack.encode({"text": word}) for word in words]
    data, ends = b"", []
    for payload in payloads:
        data += encode_frame(payload)
        ends.append(len(data))
    return data, payloads, ends


@given(texts)
def test_what_was_written_is_read(words: list[str]) -> None:
    """Every record comes back, in order, with no damage and nothing left over."""
    data, payloads, ends = framed(words)
    found = scan(data)
    assert [frame.payload for frame in found.frames] == payloads
    assert [frame.end for frame in found.frames] == ends
    assert (found.damages, found.end) == ([], len(data))


@given(texts, st.data())
def test_a_cut_loses_only_what_it_cuts(words: list[str], choice: st.DataObject) -> None:
    """Cut at any byte, the records that were whole before it remain, and no other appears."""
    data, payloads, ends = framed(words)
    cut = choice.draw(st.integers(0, len(data)))
    found = scan(data[:cut])
    whole = [end for end in ends if end <= cut]
    assert [frame.payload for frame in found.frames] == payloads[: len(whole)]
    assert found.end == (whole[-1] if whole else 0)
    assert found.damages == []


@given(texts, st.data())
def test_a_changed_byte_costs_one_record(words: list[str], choice: st.DataObject) -> None:
    """Change any byte in any way: its record is gone, all others stay, none is invented."""
    data, payloads, ends = framed(words)
    position = choice.draw(st.integers(0, len(data) - 1))
    changed = bytearray(data)
    changed[position] ^= choice.draw(st.integers(1, 255))
    hit = next(number for number, end in enumerate(ends) if position < end)
    found = scan(bytes(changed))
    assert [frame.payload for frame in found.frames] == payloads[:hit] + payloads[hit + 1 :]
    begin = ends[hit - 1] if hit else 0
    if hit == len(ends) - 1:
        assert (found.damages, found.end) == ([], begin)
    else:
        assert (found.damages, found.end) == ([Damage(begin, ends[hit])], len(data))


@given(texts, texts, st.binary(min_size=1, max_size=200))
def test_garbage_between_records_is_stepped_over(
    before: list[str], after: list[str], garbage: bytes
) -> None:
    """Bytes that are no record hide none of the records around them."""
    first, first_payloads, _ = framed(before)
    second, second_payloads, _ = framed(after)
    found = scan(first + garbage + second, base=1000)
    assert [frame.payload for frame in found.frames] == first_payloads + second_payloads
    assert found.damages == [Damage(1000 + len(first), 1000 + len(first) + len(garbage))]


@given(texts, st.integers(0, 300))
def test_reserved_space_is_no_damage(words: list[str], zeros: int) -> None:
    """The zeros of space reserved ahead are simply the end."""
    data, payloads, _ = framed(words)
    found = scan(data + bytes(zeros))
    assert [frame.payload for frame in found.frames] == payloads
    assert (found.damages, found.end) == ([], len(data))


@given(st.text(max_size=200))
def test_no_text_can_look_like_a_frame(text: str) -> None:
    """The magic cannot occur in UTF-8, so nobody's words can forge a record."""
    assert MAGIC not in text.encode()


def test_a_length_beyond_all_sense_is_damage() -> None:
    """A header that claims more than the longest record is not waited for."""
    claim = MAGIC + (FRAME_BYTES_MAX + 1).to_bytes(4, "little") + bytes(4)
    good = encode_frame(b"\xc0")
    found = scan(claim + good)
    assert found.damages == [Damage(0, HEADER_BYTES)]
    assert [frame.payload for frame in found.frames] == [b"\xc0"]


def test_too_long_a_record_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """What could not be read back is not written."""
    monkeypatch.setattr("gateway.adapters.journal.framing.FRAME_BYTES_MAX", 10)
    with pytest.raises(ValueError, match="11 bytes"):
        encode_frame(bytes(11))


@pytest.mark.parametrize("length", [0, 1, 4094, 4095, 4096, 4097, 70_000])
def test_records_of_any_length(length: int) -> None:
    """Also of one whose length is usual no more; a wrong byte in it is found."""
    payload = b"\xc4" * length
    frame = encode_frame(payload)
    found = scan(frame * 3)
    assert [each.payload for each in found.frames] == [payload] * 3
    damaged = bytearray(frame * 3)
    damaged[len(frame) + 4] ^= 1  # its length
    assert len(scan(bytes(damaged)).frames) == 2
