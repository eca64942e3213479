from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from usage_examples import a_record, an_admission

from billing.domain.usage_record import Outcome, UsageRecord, UsageSource
from gateway.adapters.journal.entries import (
    SegmentHeader,
    encode_body,
    encode_entry,
    encode_header,
)
from gateway.adapters.journal.framing import encode_frame
from gateway.adapters.journal.recovery import recover
from gateway.adapters.journal.segment import SegmentKey
from gateway.adapters.journal.storage import Storage
from gateway.domain.lease import Admitted
from gateway.domain.orphans import lost_record


def header(
    boot: int, number: int = 0, *, first_seq: int = 1, opened: tuple[Admitted, ...] = ()
) -> bytes:
    return encode_frame(
        encode_header(
            SegmentHeader(
                gateway_id="gw-1",
                boot=boot,
                number=number,
                first_seq=first_seq,
                open_requests=opened,
            )
        )
    )


def admitted(seq: int, entry: Admitted) -> bytes:
    return encode_frame(encode_entry("admitted", seq, encode_body(entry)))


def ended(seq: int, record: UsageRecord) -> bytes:
    return encode_frame(encode_entry("ended", seq, encode_body(record)))


def write(directory: Path, boot: int, number: int, *pieces: bytes) -> Path:
    path = SegmentKey(boot, number).path(directory)
    path.write_bytes(b"".join(pieces))
    return path


def test_a_new_directory_owes_nothing(tmp_path: Path) -> None:
    """Nothing there, nothing open."""
    found = recover(tmp_path, Storage())
    assert (found.open_requests, found.gateway_id, found.last_boot) == ({}, None, 0)


def test_what_never_ended_is_open(tmp_path: Path) -> None:
    """Exactly the admissions without an end, oldest first."""
    a, b, c = an_admission(), an_admission(), an_admission()
    write(tmp_path, 5, 0, header(5), admitted(1, a), admitted(2, b), admitted(3, c))
    with SegmentKey(5, 0).path(tmp_path).open("ab") as file:
        file.write(ended(4, a_record(b)))
    found = recover(tmp_path, Storage())
    assert list(found.open_requests.values()) == [a, c]
    assert (found.gateway_id, found.last_boot) == ("gw-1", 5)


def test_the_last_header_stands_for_all_before_it(tmp_path: Path) -> None:
    """Earlier segments are not read: what they left open is in the last header."""
    forgotten, carried = an_admission(), an_admission()
    write(tmp_path, 5, 0, header(5), admitted(1, forgotten), admitted(2, carried))
    write(tmp_path, 5, 1, header(5, 1, first_seq=3, opened=(carried,)))
    assert list(recover(tmp_path, Storage()).open_requests.values()) == [carried]


def test_a_damaged_header_falls_back(tmp_path: Path) -> None:
    """Where the last header is damaged, the segment before it says what was open."""
    a, b = an_admission(), an_admission()
    write(tmp_path, 5, 0, header(5), admitted(1, a), admitted(2, b))
    bad = bytearray(header(5, 1, first_seq=3, opened=(a, b)))
    bad[20] ^= 1
    write(tmp_path, 5, 1, bytes(bad), ended(3, a_record(a)))
    found = recover(tmp_path, Storage())
    assert list(found.open_requests.values()) == [b]
    assert found.damaged_records == 1


def test_a_torn_end_is_cut(tmp_path: Path) -> None:
    """Half a record at the end goes, with the reserved zeros behind it; a second look finds nothing
    more to do."""
    a = an_admission()
    whole = header(5) + admitted(1, a)
    path = write(tmp_path, 5, 0, whole, ended(2, a_record(a))[:50], bytes(9000))
    found = recover(tmp_path, Storage())
    assert found.cut_bytes == 50
    assert path.read_bytes() == whole
    again = recover(tmp_path, Storage())
    assert (again.cut_bytes, again.open_requests) == (0, found.open_requests)


def test_damage_in_the_middle_is_put_aside(tmp_path: Path) -> None:
    """A bad record with good ones behind it is quarantined and counted once; the rest is read."""
    a, b = an_admission(), an_admission()
    bad = bytearray(admitted(1, a))
    bad[-1] ^= 0x40
    path = write(tmp_path, 5, 0, header(5), bytes(bad), admitted(2, b))
    found = recover(tmp_path, Storage())
    assert list(found.open_requests.values()) == [b]
    assert found.damaged_records == 1
    side = list(tmp_path.glob(f"{path.name}.damaged-*"))
    assert [file.read_bytes() for file in side] == [bytes(bad)]
    assert recover(tmp_path, Storage()).damaged_records == 0


def test_leftover_drafts_are_removed(tmp_path: Path) -> None:
    """A segment whose birth was cut off by a crash leaves no trace."""
    (tmp_path / "0000000000000005-00000000.draft").write_bytes(b"half")
    recover(tmp_path, Storage())
    assert list(tmp_path.iterdir()) == []


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(st.integers(0, 10**6), st.booleans())
def test_any_crash_leaves_a_truth(tmp_path: Path, at: int, zeros: bool) -> None:
    """Wherever the file breaks off, what lies whole before it decides, and nothing else."""
    requests = [an_admission() for _ in range(4)]
    records = [header(5)]
    records += [admitted(number + 1, entry) for number, entry in enumerate(requests)]
    records += [ended(number + 5, a_record(entry)) for number, entry in enumerate(requests)]
    data = b"".join(records)
    cut = len(records[0]) + at % (len(data) - len(records[0]) + 1)
    write(tmp_path, 5, 0, data[:cut], bytes(500) if zeros else b"")
    ends, length = [], 0
    for record in records:
        length += len(record)
        ends.append(length)
    whole = sum(end <= cut for end in ends) - 1
    began = requests[: min(whole, 4)]
    finished = requests[: max(0, whole - 4)]
    expected = [entry for entry in began if entry not in finished]
    assert list(recover(tmp_path, Storage()).open_requests.values()) == expected


def test_a_lost_request_claims_nothing() -> None:
    """It is recorded once as gateway_lost: ours, unbilled, without a token that nobody saw."""
    entry = an_admission(sequences=3, queue_ms=9)
    record = lost_record(entry, now_ms=entry.admitted_at_ms + 77)
    assert record.outcome is Outcome.GATEWAY_LOST
    assert record.usage_source is UsageSource.ESTIMATED
    assert (record.prompt_tokens, record.output_tokens, record.billable) == (0, 0, False)
    assert (record.sequences, record.queue_ms) == (3, 9)
    assert record.ended_at_ms == entry.admitted_at_ms + 77


@pytest.mark.parametrize(("currency", "cost"), [("JPY", 0), (None, None)])
def test_a_lost_request_costs_nothing(currency: str | None, cost: int | None) -> None:
    """0 in the tenant's currency; where an earlier release did not write that down, no cost, as
    none of its records has one."""
    record = lost_record(an_admission(currency=currency), now_ms=1_800_000_000_000)
    assert (record.cost_pico, record.list_cost_pico, record.currency) == (cost, cost, currency)
    assert record.price_id is None
