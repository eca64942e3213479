"""How records lie in a segment: magic, length, crc32c, payload. Pure: bytes in, bytes out.

The magic begins with a byte that never occurs in UTF-8, and payloads are msgpack whose only free
text is UTF-8: nothing a payload carries can be mistaken for the start of a frame.
"""

import struct
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec
from crc32c import crc32c

MAGIC = b"\xf8WJ\x01"
FRAME_BYTES_MAX = 64 * 1024 * 1024
"""Longest payload. A length beyond it is damage, not a frame."""

_HEADER = struct.Struct("<4sII")
_LENGTH = struct.Struct("<I")
HEADER_BYTES = _HEADER.size
_SEEDS = [crc32c(_LENGTH.pack(length)) for length in range(4096)]
"""Checksums of the usual lengths, with which those of their payloads begin."""


class Frame(msgspec.Struct, frozen=True, gc=False):
    """A whole record: its payload and the bytes `[offset, end)` it lies in."""

    offset: int
    end: int
    payload: bytes


class Damage(NamedTuple):
    """Bytes `[offset, end)` that are no record although valid records follow."""

    offset: int
    end: int


@dataclass
class Scan:
    """What lies in a run of bytes. Whatever follows `end` is no whole record."""

    frames: list[Frame] = field(default_factory=list)
    damages: list[Damage] = field(default_factory=list)
    end: int = 0


def encode_frame(payload: bytes) -> bytes:
    """One framed record. Raises ValueError over FRAME_BYTES_MAX."""
    if len(payload) > FRAME_BYTES_MAX:
        raise ValueError(f"a record of {len(payload)} bytes is over {FRAME_BYTES_MAX}")
    length = len(payload)
    return _HEADER.pack(MAGIC, length, crc32c(payload, crc32c(_LENGTH.pack(length)))) + payload


def scan(data: bytes, *, base: int = 0) -> Scan:
    """Every whole record of `data`, in order; `base` is the offset of its first byte.

    A bad stretch is skipped only where a valid record follows it (a Damage); a bad or incomplete
    end is left after `Scan.end`, for the caller to read on or to cut.
    """
    found = Scan(end=base)
    position = 0
    while True:
        position = _take_run(data, position, base, found.frames)
        start = _next_frame(data, position + 1)
        if start is None:
            break
        found.damages.append(Damage(base + position, base + start))
        position = start
    found.end = base + position
    return found


def _take_run(data: bytes, position: int, base: int, frames: list[Frame]) -> int:
    """All frames that lie one after the other from `position` on; returns where they end. As
    `_payload_at` reads each of them, without a call for each: a journal is read by the million."""
    unpack, take = _HEADER.unpack_from, frames.append
    last = len(data) - HEADER_BYTES
    while position <= last:
        magic, length, checksum = unpack(data, position)
        begin = position + HEADER_BYTES
        end = begin + length
        if magic != MAGIC or length > FRAME_BYTES_MAX:
            break
        payload = data[begin:end]
        seed = _SEEDS[length] if length < len(_SEEDS) else crc32c(_LENGTH.pack(length))
        if crc32c(payload, seed) != checksum or len(payload) < length:
            break
        take(Frame(base + position, base + end, payload))
        position = end
    return position


def _next_frame(data: bytes, position: int) -> int | None:
    """Where the first valid frame at or after `position` begins."""
    start = data.find(MAGIC, position)
    while start >= 0:
        if _payload_at(data, start) is not None:
            return start
        start = data.find(MAGIC, start + 1)
    return None


def _payload_at(data: bytes, start: int) -> bytes | None:
    """That of the valid frame that begins there; None where none does."""
    begin = start + HEADER_BYTES
    if begin > len(data):
        return None
    magic, length, checksum = _HEADER.unpack_from(data, start)
    if magic != MAGIC or length > FRAME_BYTES_MAX:
        return None
    payload = data[begin : begin + length]
    # Over length and payload, so that a flipped length is found without reading on.
    if len(payload) < length or crc32c(payload, crc32c(data[start + 4 : start + 8])) != checksum:
        return None
    return payload
