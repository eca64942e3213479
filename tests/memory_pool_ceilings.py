"""What is learned of workers in memory, shared by several gateways: the specification itself."""

import asyncio
from collections.abc import Mapping

from memory_pool_queue import MemoryStore

from gateway.domain.queue.learned import Record
from gateway.domain.queue.samples import Samples
from gateway.serving.ports import LedgerUnavailable
from gateway.serving.queue_ceilings_ports import Met


class MemoryCeilings:
    """Implements `gateway.serving.queue_ceilings_ports.PoolCeilings` beside a `MemoryStore`: on its
    time, away when it is."""

    def __init__(self, store: MemoryStore) -> None:
        self.store = store
        self.records: dict[tuple[str, str], Record] = {}
        self.meetings = 0
        self.off_ms = 0
        """What its clock is ahead of the gateways' own."""
        self.loses_reply = False

    @property
    def now_ms(self) -> int:
        """The store's time."""
        return self.store.clock.now_ms() + self.off_ms

    async def meet(self, pool: str, brought: Mapping[str, Record]) -> Met:
        await asyncio.sleep(0)
        if self.store.away:
            raise LedgerUnavailable(ConnectionError)
        self.meetings += 1
        taken = {worker for worker, each in brought.items() if self._meet((pool, worker), each)}
        records = {worker: self.records[pool, worker] for worker in brought}
        await asyncio.sleep(0)
        if self.loses_reply:
            raise LedgerUnavailable(TimeoutError)
        return Met(self.now_ms, records, frozenset(taken))

    def _meet(self, key: tuple[str, str], brought: Record) -> bool:
        kept = self.records.get(key)
        self.records[key] = first_met(brought) if kept is None else kept.met(brought)
        return kept is None or kept.yields_to(brought)


def first_met(brought: Record) -> Record:
    """What becomes of what is brought where nothing is remembered."""
    nothing = Record(brought.learned, Samples(brought.learned.epoch))
    return nothing.met(brought)
