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


class EndedEntry(msgspec.Struct, frozen=True, tag="ended"):
    """A request ended, with what it used."""

    seq: int
    body: UsageRecord


Entry = AdmittedEntry | EndedEntry
Record = SegmentHeader | Entry


class _Encoded(msgspec.Struct, frozen=True):
    """An entry whose body is encoded already: on the appender's side, where a body that cannot be
    encoded fails its own caller and nobody else's."""

    type: Kind
    seq: int
    body: msgspec.Raw


class _Numbered(msgspec.Struct, frozen=True):
    """The least that can be read of an entry whose body this version does not understand."""

    seq: int


_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[Record] = msgspec.msgpack.Decoder(Record)
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


def encode_entry(kind: Kind, seq: int, body: bytes) -> bytes:
    """An entry's payload, from a body encoded by `encode_body`."""
    return _encoder.encode(_Encoded(kind, seq, msgspec.Raw(body)))


def decode(payload: bytes) -> Record:
    """Read one record. Raises UndecodableRecord, with its sequence number where that is legible."""
    try:
        return _decoder.decode(payload)
    except msgspec.DecodeError:
        pass
    try:
        seq = _numbered.decode(payload).seq
    except msgspec.DecodeError:
        seq = None
    raise UndecodableRecord(seq)
