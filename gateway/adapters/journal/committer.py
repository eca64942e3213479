"""Group commit: many entries, one write, one sync. Synchronous; the writer thread owns it."""

import contextlib
import errno
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from uuid import UUID

from billing.domain.usage_record import UsageRecord
from gateway.adapters.journal.batch import Append, Durable, Fate
from gateway.adapters.journal.entries import SegmentHeader, encode_body, encode_entry
from gateway.adapters.journal.framing import HEADER_BYTES, encode_frame
from gateway.adapters.journal.identity import Identity, begin_boot
from gateway.adapters.journal.open_requests import OpenRequests
from gateway.adapters.journal.segment import Segment, SegmentKey
from gateway.adapters.journal.space import JournalSpace
from gateway.adapters.journal.storage import Storage
from gateway.domain.lease import Admitted
from gateway.domain.orphans import lost_record
from gateway.telemetry.process import JOURNAL_COMMIT

PROBE_BYTES = 64 * 1024
"""Space that a full disk must have again before admissions are tried."""
BYTES_MAX = 32 * 1024**3
logger = logging.getLogger(__name__)


class Committer:
    """Appends batches to the current segment, and replaces the segment when it is full or bad."""

    def __init__(
        self,
        directory: Path,
        storage: Storage,
        identity: Identity,
        *,
        segment_bytes: int,
        bytes_max: int = BYTES_MAX,
    ) -> None:
        self._directory = directory
        self._storage = storage
        self.identity = identity
        self._segment_bytes = segment_bytes
        self._segment: Segment | None = None
        self._bad: Segment | None = None
        self._roll_at = segment_bytes
        self._seq = 0
        self._open = OpenRequests()
        self.space = JournalSpace(directory, bytes_max)
        self.full = False
        self.durable = Durable(SegmentKey(identity.boot, 0), 0, 0)

    @property
    def failing(self) -> bool:
        """Whether admissions are refused."""
        return self._segment is None or self.full

    @property
    def poisoned(self) -> bool:
        """Whether a write failed, so that there is no segment to append to."""
        return self._segment is None

    def begin(
        self,
        lost: Sequence[Admitted],
        *,
        now_ms: int,
        known: Mapping[UUID, UsageRecord] | None = None,
    ) -> None:
        """Open the boot's first segment and end there what an earlier boot left open: as `known`
        says or, where it does not, as gateway_lost. Raises OSError.
        """
        ends = (
            (known or {}).get(entry.request_id) or lost_record(entry, now_ms=now_ms)
            for entry in lost
        )
        ended = [Append(end.request_id, encode_body(end), None) for end in ends]
        self._open_segment(tuple(lost), ended)

    def commit(self, batch: Sequence[Append]) -> list[Fate]:
        """Make a batch durable together; never raises OSError."""
        wanted = [append for append in batch if append.admitted is not None]
        room = self._segment is not None and (not wanted or self._make_room(wanted))
        writable = batch if room else [each for each in batch if each.admitted is None]
        written = self._segment is not None and self._write(writable)
        if written and room:
            return [Fate.DURABLE] * len(batch)
        return [
            Fate.DURABLE
            if written and (room or append.admitted is None)
            else (Fate.SPARE if append.admitted is None else Fate.REFUSED)
            for append in batch
        ]

    def check(self) -> None:
        """Fail now, not at the next commit, where the segment was taken away meanwhile."""
        if self._segment is None:
            return
        try:
            if self._segment.at_its_path():
                return
            error = OSError(errno.ENOENT, "the segment is no longer in its directory")
        except OSError as failure:
            error = failure
        self._poison(error)

    def heal(self, spare: Sequence[Append], *, now_ms: int) -> bool:
        """Try to write again: into the same segment where only space was short, into a new boot's
        first segment where a write had failed. Returns whether admissions are possible again; if
        so, `spare` is durable too, and so is again what a segment held that was taken away."""
        if self._segment is not None:
            reserved = self._open.reserved_bytes
            self.space.count(self._segment.key)
            with contextlib.suppress(OSError):
                if not self.space.to_free(self._segment.end + reserved):
                    self._segment.reserve(reserved + PROBE_BYTES)
                    self.full = False
            return not self.full
        try:
            if self._bad is not None:
                self._bad.put_back()
                self._bad.cut()
            # A new boot, because which sequence numbers the bad file holds is not known.
            self.identity = begin_boot(
                self._directory, self._storage, found=self.identity, now_ms=now_ms
            )
            self._open_segment(self._open.entries(), spare)
        except OSError:
            return False
        self._let_go_of_bad()
        logger.warning("journal: writing again, boot %d", self.identity.boot)
        return True

    def forget(self, request_ids: Sequence[UUID]) -> None:
        """These ended outside the file: the next header does not list them."""
        for request_id in request_ids:
            self._open.end(request_id)
        self._publish()

    def seal(self) -> None:
        """Close the file, unused space given back."""
        if self._segment is not None:
            self._segment.seal()
            self._segment = None
        if self._bad is not None:
            with contextlib.suppress(OSError):
                if not self._bad.at_its_path():
                    logger.critical("journal: closed without its file; what it held is lost")
            self._let_go_of_bad()

    def _let_go_of_bad(self) -> None:
        if self._bad is not None:
            self._bad.abandon()
            self._bad = None

    def _make_room(self, wanted: Sequence[Append]) -> bool:
        """Space for these admissions and the ends of all that runs, so that a disk which fills up
        refuses new requests while what runs can still end."""
        assert self._segment is not None  # noqa: S101 - commit() asks only while one is open
        if self._segment.end >= self._roll_at:
            self._roll()
            if self._segment is None:
                return False
        entries = sum(HEADER_BYTES + 64 + len(append.body) for append in wanted)
        ends = sum(append.end_bytes for append in wanted)
        needed = self._open.reserved_bytes + entries + ends
        try:
            if not self.space.holds(self._segment.end + needed):
                raise OSError(errno.EDQUOT, "the journal takes as much as it may")
            self._segment.reserve(needed)
        except OSError as error:
            if not self.full:
                logger.error("journal: no space (%s), admissions are refused", _name(error))
            self.full = True
            return False
        self.full = False
        return True

    def _write(self, batch: Sequence[Append]) -> bool:
        assert self._segment is not None  # noqa: S101 - commit() asks only while one is open
        if not batch:
            return True
        frames = self._frames(batch, first_seq=self._seq + 1)
        try:
            with JOURNAL_COMMIT.time():
                self._segment.append(frames)
        except OSError as error:
            self._poison(error)
            return False
        self._account(batch)
        return True

    def _frames(self, batch: Sequence[Append], *, first_seq: int) -> bytes:
        return b"".join(
            [
                encode_frame(encode_entry(append.kind, seq, append.body))
                for seq, append in enumerate(batch, start=first_seq)
            ]
        )

    def _account(self, batch: Sequence[Append]) -> None:
        for append in batch:
            self._seq += 1
            if append.admitted is None:
                self._open.end(append.request_id)
            else:
                self._open.add(
                    append.admitted,
                    boot=self.identity.boot,
                    seq=self._seq,
                    reserved_bytes=append.end_bytes,
                )
        self._publish()

    def _publish(self) -> None:
        key, end = self.durable.key, self.durable.end
        if self._segment is not None:
            key, end = self._segment.key, self._segment.end
        self.durable = Durable(key, end, self._seq, self._open.oldest, len(self._open))

    def _open_segment(self, open_requests: tuple[Admitted, ...], ended: Sequence[Append]) -> None:
        self._segment = Segment.create(
            self._directory,
            self._storage,
            self._header(number=0, first_seq=1, open_requests=open_requests),
            entries=self._frames(ended, first_seq=1),
            reserve_bytes=self._open.reserved_bytes,
        )
        self._roll_at = self._segment_bytes
        self.space.count(self._segment.key)
        self._seq = 0
        self.full = False
        self._account(ended)

    def _roll(self) -> None:
        old = self._segment
        assert old is not None  # noqa: S101 - only an open segment can be full
        header = self._header(
            number=old.key.number + 1,
            first_seq=self._seq + 1,
            open_requests=self._open.entries(),
        )
        try:
            new = Segment.create(
                self._directory, self._storage, header, reserve_bytes=self._open.reserved_bytes
            )
        except OSError as error:
            if _path_of(self._directory, header).exists():
                # It would hide from a recovery whatever the old one takes after it.
                self._poison(error)
                return
            # The old one still works, only longer than it should be.
            self._roll_at = old.end + self._segment_bytes // 8
            logger.warning("journal: no new segment (%s), the old one goes on", _name(error))
            return
        self._segment = new
        self._roll_at = self._segment_bytes
        self._publish()
        old.seal()
        self.space.count(new.key)

    def _header(
        self, *, number: int, first_seq: int, open_requests: tuple[Admitted, ...]
    ) -> SegmentHeader:
        return SegmentHeader(
            gateway_id=self.identity.gateway_id,
            boot=self.identity.boot,
            number=number,
            first_seq=first_seq,
            open_requests=open_requests,
        )

    def _poison(self, error: OSError) -> None:
        """Never write there again: after a failed sync the cache no longer tells what is on disk.

        What the failed batch left is cut, now or before another file is written. Where neither is
        possible its ends are told twice, which is known (`usage_late`), and its admissions, which
        were refused, look as if they had not ended. The file stays open until another one is
        written: it may be all that holds what was durable.
        """
        logger.critical("journal: write failed (%s), admissions are refused", _name(error))
        assert self._segment is not None  # noqa: S101 - it has just failed
        self._segment.trim()
        self._bad, self._segment = self._segment, None


def _path_of(directory: Path, header: SegmentHeader) -> Path:
    """The file that begins with that header."""
    return SegmentKey(header.boot, header.number).path(directory)


def _name(error: OSError) -> str:
    return errno.errorcode.get(error.errno or 0, "unknown error")
