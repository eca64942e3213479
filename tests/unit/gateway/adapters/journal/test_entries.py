import msgspec
import pytest
from usage_examples import a_record, an_admission

from gateway.adapters.journal.entries import (
    AdmittedEntry,
    EndedEntry,
    SegmentHeader,
    UndecodableRecord,
    decode,
    encode_body,
    encode_entry,
    encode_header,
)


def test_entries_come_back_as_they_were() -> None:
    """An admission and an end survive encoding with every field, optional ones included."""
    admission = an_admission()
    record = a_record(admission, usage_flags=("cached_over_prompt",), reasoning_tokens=7)
    assert decode(encode_entry("admitted", 4, encode_body(admission))) == AdmittedEntry(
        4, admission
    )
    assert decode(encode_entry("ended", 5, encode_body(record))) == EndedEntry(5, record)


def test_a_header_carries_the_open_requests() -> None:
    """A segment's header gives back the admissions that were open when it began."""
    header = SegmentHeader(
        gateway_id="gw-1", boot=7, number=2, first_seq=90, open_requests=(an_admission(),)
    )
    assert decode(encode_header(header)) == header


def test_a_field_of_a_later_version_is_passed_over() -> None:
    """A record with a field that this version does not know is read all the same."""
    admission = an_admission()
    body = msgspec.msgpack.decode(encode_body(admission))
    later = msgspec.msgpack.encode(body | {"zone": "eu"})
    assert decode(encode_entry("admitted", 1, later)) == AdmittedEntry(1, admission)


def test_money_comes_back_to_the_pico() -> None:
    """Also a cost of 0, which is not the same as none, and the most that a column holds."""
    for cost in (0, 1, 2**63 - 1):
        record = a_record(price_id=7, cost_pico=cost, list_cost_pico=cost, currency="USD")
        assert decode(encode_entry("ended", 5, encode_body(record))) == EndedEntry(5, record)


def test_an_entry_of_a_release_without_money_is_read() -> None:
    """A journal outlives an upgrade: what it lacks is None, never 0."""
    money = ("price_id", "cost_pico", "list_cost_pico", "currency")
    admission, record = an_admission(currency="USD"), a_record(cost_pico=3, currency="USD")
    bodies: list[dict[str, object]] = [
        msgspec.msgpack.decode(encode_body(each)) for each in (admission, record)
    ]
    earlier = [
        msgspec.msgpack.encode({name: body[name] for name in body if name not in money})
        for body in bodies
    ]
    admitted = decode(encode_entry("admitted", 1, earlier[0]))
    ended = decode(encode_entry("ended", 2, earlier[1]))
    assert admitted == AdmittedEntry(1, msgspec.structs.replace(admission, currency=None))
    assert ended == EndedEntry(2, msgspec.structs.replace(record, cost_pico=None, currency=None))


def test_an_unknown_record_keeps_its_number() -> None:
    """A record of another kind is not read, but its sequence number is."""
    payload = msgspec.msgpack.encode({"type": "revised", "seq": 31, "body": {}})
    with pytest.raises(UndecodableRecord) as caught:
        decode(payload)
    assert caught.value.seq == 31


def test_what_is_no_record_has_no_number() -> None:
    """Bytes that are not even msgpack of ours say nothing about a number."""
    with pytest.raises(UndecodableRecord) as caught:
        decode(b"\xc1")
    assert caught.value.seq is None
