"""The journal with its second copy beside it."""

import asyncio
from collections.abc import Sequence
from uuid import UUID

from billing.domain.usage_record import UsageRecord
from gateway.adapters.journal import Journal
from gateway.adapters.second_copy import SecondCopy, Told
from gateway.adapters.second_copy_records import encode_copy
from gateway.domain.lease import Admitted


class CopiedJournal:
    """Implements `serving.ports.UsageJournal`. The journal decides; the copy is written beside its
    fsync, and where it takes longer it is waited for a moment (`second_copy.WAIT_MS`)."""

    def __init__(self, journal: Journal, copies: SecondCopy) -> None:
        self._journal = journal
        self._copies = copies
        self.open: dict[UUID, Admitted] = {}
        """Admitted, and their end is not durable, as far as this process knows."""

    @property
    def failing(self) -> bool:
        """Whether the file can no longer be written: nothing new may be admitted."""
        return self._journal.failing

    async def admitted(self, entry: Admitted) -> None:
        """Durable on return. Raises Overloaded(metering_unavailable) if it cannot be; then there is
        no copy either. One that is cancelled stays open, as in the journal."""
        value = encode_copy(entry)
        self.open[entry.request_id] = entry
        told = self._copies.add(entry.request_id, value)
        try:
            await self._journal.admitted(entry)
        except Exception:
            self.open.pop(entry.request_id, None)
            self._copies.take_out([entry.request_id])
            raise
        await self._copied(told, entry.request_id, value)

    async def ended(self, record: UsageRecord) -> None:
        """Durable on return, in the file or, where the file failed, in Postgres itself. The copy
        stays whatever happens: the request has ended so."""
        value = encode_copy(record)
        told = self._copies.add(record.request_id, value)
        await self._journal.ended(record)
        if self.open.pop(record.request_id, None) is not None:  # None: it is in Postgres already
            await self._copied(told, record.request_id, value)

    def shipped(self, request_ids: Sequence[UUID]) -> None:
        """Postgres has the ends of these."""
        for request_id in request_ids:
            self.open.pop(request_id, None)
        self._copies.take_out(request_ids)

    async def _copied(self, told: Told | None, request_id: UUID, value: bytes) -> None:
        if told is not None and not told.done.done():
            await asyncio.shield(told.done)
        if told is None or told.failed:
            # A repair that ran meanwhile may have read the journal before this was durable in it.
            self._copies.add(request_id, value)
