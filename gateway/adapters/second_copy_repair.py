"""Keeps the second copy whole: what it missed is read from the journal, what it has too much is
taken out.

Missed is what the store did not answer for, had no room for, lost, or what an earlier life of this
gateway left behind. Too much is a copy whose removal was lost.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from typing import Protocol
from uuid import UUID

from billing.domain.usage_record import UsageRecord
from gateway.adapters.journal.backlog import Backlog, Readable
from gateway.adapters.journal.segment import list_segments
from gateway.adapters.second_copy import SecondCopy
from gateway.adapters.second_copy_records import Copies, encode_copy
from gateway.domain.lease import Admitted
from gateway.serving.ports import LedgerUnavailable

TURN_S = 0.25
PROGRESS_S = 2.5
SWEEP_S = 3_600.0
ROWS = 500
LATE_S = 2.0
"""A copy that was not whole for so long is said to be degraded."""
_ALL = 2**62
logger = logging.getLogger(__name__)
Place = tuple[int, int]
"""Boot and sequence number up to which all is in Postgres."""


class Journaled(Readable, Protocol):
    """A gateway's own journal."""

    gateway_id: str

    def spare(self) -> list[UsageRecord]:
        """Ends that only memory holds."""


class CopyRepair:
    """Looks after one gateway's copies, for ever.

    `place` is how far its shipper has come, None where that is not known. `progress` tells prompt
    and output tokens so far of the requests that run.
    """

    def __init__(
        self,
        copies: SecondCopy,
        store: Copies,
        journal: Journaled,
        *,
        open_requests: Mapping[UUID, Admitted],
        place: Callable[[], Place | None],
        progress: Callable[[], Mapping[UUID, tuple[int, int]]] = dict,
    ) -> None:
        self._copies = copies
        self._store = store
        self._journal = journal
        self._open = open_requests
        self._place = place
        self._progress = progress
        self._progress_at = 0.0
        self._sweep_at = 0.0
        self._told_nothing = False

    @property
    def is_late(self) -> bool:
        """Whether the copy has not been whole for a while, or has no room."""
        return self._copies.is_full or self._copies.behind_for_s() > LATE_S

    async def run(self) -> None:
        """Four turns a second; whatever fails is tried again."""
        while True:
            await asyncio.sleep(TURN_S)
            try:
                await self.turn()
            except (LedgerUnavailable, OSError) as error:
                logger.debug("second copy: not now (%s)", type(error).__name__)
            except Exception:
                logger.exception("second copy: unexpected failure")

    async def turn(self) -> None:
        """Send what was taken out, copy again what is missing, and now and then more. Raises
        LedgerUnavailable, OSError."""
        if not (await self._copies.reopen() and await self._copies.flush()):
            return
        if self._copies.is_behind and not self._copies.is_full:
            await self.copy_again()
        now_s = time.monotonic()
        if now_s >= self._progress_at:
            self._progress_at = now_s + PROGRESS_S
            await self._tell_progress()
        if now_s >= self._sweep_at and not self._copies.is_behind:
            await self.sweep()
            self._sweep_at = now_s + SWEEP_S

    async def copy_again(self) -> None:
        """Copy all that is open or not shipped; what the store has already stays as it is. Raises
        OSError where the journal cannot be read."""
        place, gaps = self._place(), self._copies.gaps
        if place is None:
            return
        end = self._journal.durable.key.boot, self._journal.durable.seq
        with self._copies.repairing():
            for entry in self._open.values():
                self._copies.add(entry.request_id, encode_copy(entry))
            for record in self._journal.spare():
                self._copies.add(record.request_id, encode_copy(record))
            backlog = await self._unshipped(place)
            while (batch := await asyncio.to_thread(backlog.read, ROWS)) is not None:
                for each in batch.ended:
                    self._copies.add(each.body.request_id, encode_copy(each.body))
                backlog.accept(batch)
                if not await self._copies.flush() or self._copies.is_full:
                    return
                if backlog.place >= end:  # what is later was sent when it was written
                    break
            if await self._copies.flush():
                self._copies.repaired(gaps)

    async def sweep(self) -> None:
        """Take out copies of what is neither open nor unshipped. Raises LedgerUnavailable, and
        OSError where the journal cannot be read."""
        place = self._place()
        if place is None:
            return
        # In this order: whatever the first look finds is open, or durable and not shipped, at the
        # second or third, or else it is in Postgres.
        strays = await self._store.names(self._journal.gateway_id)
        strays -= self._open.keys()
        strays -= {record.request_id for record in self._journal.spare()}
        backlog = await self._unshipped(self._place() or place)
        while strays and (batch := await asyncio.to_thread(backlog.read, ROWS)) is not None:
            strays -= {each.body.request_id for each in batch.ended}
            backlog.accept(batch)
        if strays:
            logger.info("second copy: %d copies of what Postgres has are taken out", len(strays))
            self._copies.take_out(strays)

    async def _tell_progress(self) -> None:
        told = self._progress()
        if told or not self._told_nothing:
            await self._store.tell_progress(self._journal.gateway_id, told)
        self._told_nothing = not told

    async def _unshipped(self, place: Place) -> Backlog:
        boot, seq = place
        backlog = Backlog(self._journal)

        def seek() -> None:
            boots = {key.boot for key in list_segments(self._journal.directory)}
            backlog.seek(dict.fromkeys((b for b in boots if b < boot), _ALL) | {boot: seq})

        await asyncio.to_thread(seek)
        return backlog
