"""What a record says: a segment's header, an admission or an end, as tagged msgpack."""

from typing import Literal

import msgspec

from billing.domain.usage_record import UsageRecord
from gateway.domain.lease import Admitted

Kind = Literal["admitted", "ended"]


class SegmentHeader(msgspec.Struct, frozen=True, kw_only=True, tag="segment"):
    """First record of a segment: whose it is, and all that recovery needs of what came before."""

    gateway_id: str
    boot: int
    number: int
    first_seq: int
    """Sequence number of the first entry that follows."""
    open_requests: tuple[Admitted, ...] = ()
    """Admitted before this segment and not ended when it began."""


class AdmittedEntry(msgspec.Struct, frozen=True, tag="admitted"):
    """A request was admitted."""

    seq: int
    body: Admitted


class EndedEntry(msgspec.Struct, frozen=True, gc=False, tag="ended"):
    """A request ended, with what it used."""

    seq: int
    body: UsageRecord


Entry = AdmittedEntry | EndedEntry
Record = SegmentHeader | Entry


class _Arrival(msgspec.Struct, frozen=True, gc=False):
    admitted_at_ms: int


class CountedAdmission(msgspec.Struct, frozen=True, gc=False, tag="admitted"):
    """An `AdmittedEntry` of which only the place and the time are wanted."""

    seq: int
    body: _Arrival


class _Numbered(msgspec.Struct, frozen=True):
    """The least that can be read of an entry whose body this version does not understand."""

    seq: int


_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[Record] = msgspec.msgpack.Decoder(Record)
_counting: msgspec.msgpack.Decoder[SegmentHeader | CountedAdmission | EndedEntry] = (
    msgspec.msgpack.Decoder(SegmentHeader | CountedAdmission | EndedEntry)
)
_numbered = msgspec.msgpack.Decoder(_Numbered)


class UndecodableRecord(Exception):
    """A record with a right checksum that this version cannot read."""

    def __init__(self, seq: int | None) -> None:
        super().__init__("a journal record of another version")
        self.seq = seq


def encode_header(header: SegmentHeader) -> bytes:
    """A header's payload."""
    return _encoder.encode(header)


def encode_body(body: Admitted | UsageRecord) -> bytes:
    """The part of an entry that does not depend on its sequence number."""
    return _encoder.encode(body)


_HEADS: dict[Kind, bytes] = {
    kind: b"\x83" + b"".join(map(_encoder.encode, ("type", kind, "seq"))) + b"\xcf"
    for kind in ("admitted", "ended")
}
"""Of a map of three, up to a number of eight bytes."""
_BODY = _encoder.encode("body")


def encode_entry(kind: Kind, seq: int, body: bytes) -> bytes:
    """An entry's payload, from a body encoded by `encode_body`: on the appender's side, where a
    body that cannot be encoded fails its own caller and nobody else's."""
    return _HEADS[kind] + seq.to_bytes(8, "big") + _BODY + body


def decode_to_ship(payload: bytes) -> SegmentHeader | CountedAdmission | EndedEntry:
    """As `decode`, without what an admission says of its request."""
    try:
        return _counting.decode(payload)
    except msgspec.DecodeError:
        raise _undecodable(payload) from None


def decode(payload: bytes) -> Record:
    """Read one record. Raises UndecodableRecord, with its sequence number where that is legible."""
    try:
        return _decoder.decode(payload)
    except msgspec.DecodeError:
        raise _undecodable(payload) from None


def _undecodable(payload: bytes) -> UndecodableRecord:
    try:
        return UndecodableRecord(_numbered.decode(payload).seq)
    except msgspec.DecodeError:
        return UndecodableRecord(None)
