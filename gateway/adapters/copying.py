"""A gateway's journal with its second copy, and what looks after that, put together."""

from collections.abc import Callable, Mapping
from uuid import UUID

from gateway.adapters.copied_journal import CopiedJournal
from gateway.adapters.journal import Journal
from gateway.adapters.second_copy import SecondCopy, Store
from gateway.adapters.second_copy_records import Copies
from gateway.adapters.second_copy_repair import CopyRepair
from gateway.adapters.shipper import Shipper
from gateway.domain.presence import Heartbeat, heartbeat


class Copying:
    """What the straight line writes to is `journal`. The shipper's `on_shipped` is taken."""

    def __init__(
        self,
        store: Store,
        journal: Journal,
        shipper: Shipper,
        *,
        entries_max: int,
        progress: Callable[[], Mapping[UUID, tuple[int, int]]],
    ) -> None:
        self.copies = SecondCopy(store, journal.gateway_id, entries_max=entries_max)
        self.journal = CopiedJournal(journal, self.copies)
        self._file = journal
        self._shipper = shipper
        shipper.on_shipped = self.journal.shipped
        self._repair = CopyRepair(
            self.copies,
            Copies(store),
            journal,
            open_requests=self.journal.open,
            place=lambda: shipper.place,
            progress=progress,
        )

    async def run(self) -> None:
        """Keep the copy whole, for ever."""
        await self._repair.run()

    def is_late(self) -> bool:
        """Whether the copy has not been whole for a while."""
        return self._repair.is_late

    def heartbeat(self) -> Heartbeat:
        """How far the journal is now, and how many requests are open at that very number: one that
        waits for its sync is beyond it."""
        durable = self._file.durable
        return heartbeat(
            durable.key.boot,
            durable.seq,
            open_count=durable.open_count,
            shipped=self._shipper.place,
        )
