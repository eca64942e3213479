import errno
from pathlib import Path

from usage_examples import FailingStorage, a_record, an_admission

from billing.domain.usage_record import UsageRecord
from gateway.adapters.journal.batch import Append, Fate
from gateway.adapters.journal.committer import Committer
from gateway.adapters.journal.entries import EndedEntry, SegmentHeader, decode, encode_body
from gateway.adapters.journal.identity import begin_boot, read_identity
from gateway.adapters.journal.reader import read_whole
from gateway.adapters.journal.recovery import recover
from gateway.adapters.journal.segment import list_segments
from gateway.adapters.journal.storage import Storage
from gateway.domain.lease import Admitted

DURABLE, REFUSED, SPARE = Fate.DURABLE, Fate.REFUSED, Fate.SPARE


def begun(directory: Path, storage: Storage, *, segment_bytes: int = 1 << 20) -> Committer:
    identity = begin_boot(directory, storage, found=read_identity(directory), now_ms=1000)
    committer = Committer(directory, storage, identity, segment_bytes=segment_bytes)
    committer.begin((), now_ms=1000)
    return committer


def admits(entry: Admitted) -> Append:
    return Append(entry.request_id, encode_body(entry), entry)


def ends(record: UsageRecord) -> Append:
    return Append(record.request_id, encode_body(record), None)


def recorded(directory: Path) -> list[UsageRecord]:
    """Every end in every segment, in order."""
    records = (
        decode(frame.payload)
        for key in list_segments(directory)
        for stretch in read_whole(key.path(directory))
        for frame in stretch.frames
    )
    return [record.body for record in records if isinstance(record, EndedEntry)]


def headers(directory: Path) -> list[SegmentHeader]:
    found: list[SegmentHeader] = []
    for key in list_segments(directory):
        header = decode(next(read_whole(key.path(directory))).frames[0].payload)
        assert isinstance(header, SegmentHeader)
        found.append(header)
    return found


def test_a_batch_is_one_sync(tmp_path: Path) -> None:
    """However many wait, they are written with one sync, and numbered without a gap."""
    storage = FailingStorage()
    committer = begun(tmp_path, storage)
    before = storage.syncs
    admissions = [an_admission() for _ in range(50)]
    assert committer.commit([admits(each) for each in admissions]) == [DURABLE] * 50
    assert storage.syncs == before + 1
    assert committer.durable.seq == 50
    assert committer.durable.oldest_open == (committer.identity.boot, 1)


def test_a_full_disk_refuses_admissions_and_takes_ends(tmp_path: Path) -> None:
    """With no space left, what runs can still end in the room kept for it; then space comes back
    and admissions go on in the same file."""
    storage = FailingStorage()
    committer = begun(tmp_path, storage)
    running = [an_admission() for _ in range(30)]
    assert committer.commit([admits(each) for each in running]) == [DURABLE] * 30
    storage.reserve_errno = errno.ENOSPC
    big = an_admission(model="m" * 2_000_000)
    assert committer.commit([admits(big), ends(a_record(running[0]))]) == [REFUSED, DURABLE]
    assert committer.failing
    assert committer.commit([ends(a_record(each)) for each in running[1:]]) == [DURABLE] * 29
    storage.reserve_errno = 0
    assert committer.heal([], now_ms=2000)
    assert committer.commit([admits(an_admission())]) == [DURABLE]
    assert len(headers(tmp_path)) == 1
    assert [record.request_id for record in recorded(tmp_path)] == [
        each.request_id for each in running
    ]


def test_ends_need_no_new_space(tmp_path: Path) -> None:
    """The space of an end is on the disk before its request is admitted."""
    storage = FailingStorage()
    committer = begun(tmp_path, storage)
    running = [an_admission() for _ in range(3000)]
    assert set(committer.commit([admits(each) for each in running])) == {DURABLE}
    path = list_segments(tmp_path)[0].path(tmp_path)
    taken = path.stat().st_blocks
    storage.reserve_errno = errno.ENOSPC
    assert set(committer.commit([ends(a_record(each)) for each in running])) == {DURABLE}
    assert path.stat().st_blocks == taken


def test_a_failed_sync_poisons_the_file(tmp_path: Path) -> None:
    """After an fsync error nothing more goes into that file, its admissions are refused, its ends
    are kept elsewhere, and nothing that was durable before is touched."""
    storage = FailingStorage()
    committer = begun(tmp_path, storage)
    first, second = an_admission(), an_admission()
    committer.commit([admits(first), admits(second)])
    committer.commit([ends(a_record(first))])
    path = list_segments(tmp_path)[0].path(tmp_path)
    storage.sync_errno = errno.EIO
    fates = committer.commit([ends(a_record(second)), admits(an_admission())])
    assert fates == [SPARE, REFUSED]
    storage.sync_errno = 0
    size = path.stat().st_size
    assert committer.commit([admits(an_admission()), ends(a_record(second))]) == [REFUSED, SPARE]
    assert path.stat().st_size == size
    assert recorded(tmp_path) == [a_record(first)]


def test_healing_writes_what_was_spare(tmp_path: Path) -> None:
    """A healed journal goes on in a new boot whose file holds the spared ends, so that a crash
    right after finds nothing open that has ended."""
    storage = FailingStorage()
    committer = begun(tmp_path, storage)
    running, ended = an_admission(), an_admission()
    committer.commit([admits(running), admits(ended)])
    boot = committer.identity.boot
    storage.write_errno, storage.short_write_bytes = errno.EIO, 20
    assert committer.commit([ends(a_record(ended))]) == [SPARE]
    assert not committer.heal([ends(a_record(ended))], now_ms=2000)
    storage.write_errno = 0
    assert committer.heal([ends(a_record(ended))], now_ms=2000)
    assert committer.durable.key.boot > boot
    assert committer.durable.seq == 1
    committer.seal()
    assert recorded(tmp_path) == [a_record(ended)]
    assert list(recover(tmp_path, Storage()).open_requests.values()) == [running]


def test_what_ended_elsewhere_is_not_open(tmp_path: Path) -> None:
    """An end that Postgres took directly leaves the next header."""
    storage = FailingStorage()
    committer = begun(tmp_path, storage)
    admission = an_admission()
    committer.commit([admits(admission)])
    storage.sync_errno = errno.EIO
    committer.commit([ends(a_record(admission))])
    storage.sync_errno = 0
    committer.forget([admission.request_id])
    assert committer.heal([], now_ms=2000)
    assert headers(tmp_path)[-1].open_requests == ()


def test_a_long_segment_gives_way_to_the_next(tmp_path: Path) -> None:
    """At its size a segment is closed without spare space, and the next one begins with what is
    open and the number that follows."""
    committer = begun(tmp_path, Storage(), segment_bytes=4000)
    running = [an_admission()]
    committer.commit([admits(running[0])])
    while len(list_segments(tmp_path)) == 1:
        entry = an_admission()
        committer.commit([admits(entry)])
        committer.commit([ends(a_record(entry))])
    first, second = headers(tmp_path)
    assert (first.first_seq, first.open_requests) == (1, ())
    # The roll comes before the admission that caused it, which is open in the next segment only.
    assert second.open_requests == tuple(running)
    assert second.first_seq == committer.durable.seq - 1
    closed = list_segments(tmp_path)[0].path(tmp_path)
    assert b"\0" * 64 not in closed.read_bytes()
    assert 4000 <= closed.stat().st_size < 8000


def test_a_roll_that_fails_goes_on_in_the_old_file(tmp_path: Path) -> None:
    """Where no new file can be made but the old one works, nothing is refused."""
    storage = FailingStorage()
    committer = begun(tmp_path, storage, segment_bytes=2000)
    storage.create_errno = errno.EMFILE
    for _ in range(40):
        assert committer.commit([admits(an_admission())]) == [DURABLE]
    assert len(list_segments(tmp_path)) == 1
    storage.create_errno = 0
    for _ in range(5):
        assert committer.commit([admits(an_admission())]) == [DURABLE]
    assert len(list_segments(tmp_path)) >= 2
