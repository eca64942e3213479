"""The journal as the straight line sees it: two awaits that return when all is durable."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self
from uuid import UUID

import msgspec

from billing.domain.usage_record import Outcome, UsageRecord
from gateway.adapters.journal.batch import Append, Durable, Fate
from gateway.adapters.journal.committer import BYTES_MAX, Committer
from gateway.adapters.journal.entries import encode_body
from gateway.adapters.journal.identity import (
    DirectoryLock,
    Identity,
    JournalUnusable,
    begin_boot,
    read_identity,
)
from gateway.adapters.journal.recovery import Recovery, recover
from gateway.adapters.journal.retention import delete_expired
from gateway.adapters.journal.space import JournalSpace
from gateway.adapters.journal.storage import Storage
from gateway.adapters.journal.writer import Writer
from gateway.domain.lease import Admitted
from gateway.errors import Overloaded

SEGMENT_BYTES = 64 * 1024 * 1024
HEAL_INTERVAL_MS = 1_000
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Recovered:
    """What an earlier life of this gateway left behind, dealt with when the journal opened."""

    lost: tuple[Admitted, ...]
    """Requests that were running: they are recorded as gateway_lost; their leases may go."""
    ended: tuple[UsageRecord, ...]
    """Ends that a copy knew and this disk did not; they may not have been settled."""
    damaged_records: int
    cut_bytes: int


def wall_clock_ms() -> int:
    """Unix time in milliseconds."""
    return time.time_ns() // 1_000_000


Known = Callable[[str, Sequence[Admitted]], Awaitable[Mapping[UUID, UsageRecord]]]
"""What is known elsewhere of requests that a gateway's earlier life had open. Does not raise."""


class Journal:
    """Implements `serving.ports.UsageJournal` on a directory of this gateway's own.

    Where a write fails, `failing` is true and admissions are refused until an attempt, made each
    second, succeeds: for want of space in the same file, after any other error in a new file under
    a new boot number, which first takes the ends that only memory held meanwhile. A file that was
    deleted, moved away or replaced is such an error, noticed before anything in it counts as
    durable and within a second: what it held is written again from the open file, under its name,
    once its directory is there.
    """

    def __init__(
        self, directory: Path, lock: DirectoryLock, gateway_id: str, storage: Storage
    ) -> None:
        self.directory = directory
        self.storage = storage
        self.gateway_id = gateway_id
        self.recovered = Recovered((), (), 0, 0)
        self._lock = lock
        self._writer: Writer
        self._space: JournalSpace
        self._listeners: list[Callable[[], None]] = []

    @classmethod
    async def open(
        cls,
        directory: Path,
        *,
        segment_bytes: int = SEGMENT_BYTES,
        bytes_max: int = BYTES_MAX,
        heal_interval_ms: int = HEAL_INTERVAL_MS,
        storage: Storage | None = None,
        now_ms: Callable[[], int] = wall_clock_ms,
        known: Known | None = None,
    ) -> Self:
        """Recover what lies there and begin a new boot. Admissions are refused while its segments
        take `bytes_max` or more; ends are not. What was open ends as `known` says, else as lost.

        Raises JournalUnusable where another gateway has the directory or it cannot be written.
        """
        disk = storage or Storage()
        lock = await asyncio.to_thread(DirectoryLock.take, directory)
        try:
            recovery, identity = await asyncio.to_thread(_find, directory, disk)
            lost = tuple(recovery.open_requests.values())
            ends: Mapping[UUID, UsageRecord] = {}
            if lost and identity is not None and known is not None:
                ends = await known(identity.gateway_id, lost)
            committer = await asyncio.to_thread(
                _begin,
                directory,
                disk,
                identity,
                segment_bytes=segment_bytes,
                bytes_max=bytes_max,
                now_ms=now_ms(),
                lost=lost,
                ends=ends,
            )
        except OSError as error:
            lock.release()
            raise JournalUnusable(f"journal directory: {error.strerror}") from error
        except BaseException:
            lock.release()
            raise
        journal = cls(directory, lock, committer.identity.gateway_id, disk)
        journal.recovered = _recovered(recovery, ends)
        journal._space = committer.space
        journal._writer = Writer(
            committer,
            asyncio.get_running_loop(),
            heal_interval_ms=heal_interval_ms,
            on_commit=journal._notify,
            now_ms=now_ms,
        )
        journal._writer.start()
        return journal

    async def admitted(self, entry: Admitted) -> None:
        """Durable on return, with room on the disk for its end.

        Raises Overloaded(metering_unavailable) where it is not: the request must not run. A caller
        that is cancelled while it waits does not know which; it records an end either way.
        """
        if self._writer.failing:
            raise _unavailable()
        fate = await self._writer.submit(Append(entry.request_id, encode_body(entry), entry))
        if fate is not Fate.DURABLE:
            raise _unavailable()

    async def ended(self, record: UsageRecord) -> None:
        """Durable on return: in the file or, where that failed, in Postgres. A cancelled caller
        changes nothing: the record is kept.

        Raises Overloaded(metering_unavailable) only where the journal closes before it is written.
        """
        fate = await self._writer.submit(Append(record.request_id, encode_body(record), None))
        if fate is not Fate.DURABLE:
            raise _unavailable()

    @property
    def failing(self) -> bool:
        """Whether admissions are refused, for want of space or after a failed write."""
        return self._writer.failing

    @property
    def boot(self) -> int:
        """The boot whose sequence numbers `durable` counts."""
        return self._writer.boot

    @property
    def durable(self) -> Durable:
        """How far the journal is on the disk."""
        return self._writer.durable

    @property
    def bytes(self) -> int:
        """Disk space that its segments take."""
        return self._space.used(self.durable.end)

    @property
    def needs_space(self) -> bool:
        """Whether shipped segments should go although they are young (`make_space`)."""
        return self._space.to_free(self.durable.end) > 0

    def make_space(self, shipped: Mapping[int, int]) -> int:
        """Delete shipped segments, however young, where it nears the most that it may take; returns
        how many. `shipped` is each boot's watermark. Blocks. Raises OSError."""
        durable = self.durable
        deleted = delete_expired(
            self.directory,
            durable,
            shipped,
            written_before_s=0.0,
            bytes_to_free=self._space.to_free(durable.end),
        )
        self._space.count(durable.key)
        return deleted

    def on_durable(self, listener: Callable[[], None]) -> None:
        """Call `listener` on the event loop whenever more is durable, or held as spare."""
        self._listeners.append(listener)

    def spare(self) -> list[UsageRecord]:
        """Ends that a failed file did not take, in memory only. The shipper's to write."""
        return [
            msgspec.msgpack.decode(append.body, type=UsageRecord) for append in self._writer.spare()
        ]

    def release_spare(self, request_ids: Sequence[UUID]) -> None:
        """Postgres has these ends."""
        self._writer.release(request_ids)

    async def close(self) -> None:
        """Commit what waits and let the directory go. Drain the shipper first; what then is open
        is gateway_lost at the next open."""
        self._writer.close()
        await asyncio.to_thread(self._writer.stop)
        self._lock.release()

    def _notify(self) -> None:
        for listener in self._listeners:
            listener()


def _find(directory: Path, storage: Storage) -> tuple[Recovery, Identity | None]:
    recovery = recover(directory, storage)
    identity = read_identity(directory)
    if identity is None and recovery.gateway_id is not None:
        identity = Identity(recovery.gateway_id, recovery.last_boot)
    if identity is not None and identity.boot < recovery.last_boot:
        identity = Identity(identity.gateway_id, recovery.last_boot)
    return recovery, identity


def _begin(
    directory: Path,
    storage: Storage,
    identity: Identity | None,
    *,
    segment_bytes: int,
    bytes_max: int,
    now_ms: int,
    lost: Sequence[Admitted],
    ends: Mapping[UUID, UsageRecord],
) -> Committer:
    committer = Committer(
        directory,
        storage,
        begin_boot(directory, storage, found=identity, now_ms=now_ms),
        segment_bytes=segment_bytes,
        bytes_max=bytes_max,
    )
    committer.begin(lost, now_ms=now_ms, known=ends)
    return committer


def _recovered(recovery: Recovery, ends: Mapping[UUID, UsageRecord]) -> Recovered:
    ended = {
        request_id: end
        for request_id, end in ends.items()
        if end.outcome is not Outcome.GATEWAY_LOST
    }
    opened = recovery.open_requests
    lost = tuple(entry for request_id, entry in opened.items() if request_id not in ended)
    if lost:
        logger.warning("journal: %d requests of an earlier boot are gateway_lost", len(lost))
    return Recovered(lost, tuple(ended.values()), recovery.damaged_records, recovery.cut_bytes)


def _unavailable() -> Overloaded:
    return Overloaded("usage cannot be recorded now", code="metering_unavailable")
