"""What a store that forgot is told of a pool: what runs here, then which workers there are.

In that order, so that nobody is granted what is in use.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Protocol

from gateway.serving.ports import LedgerUnavailable
from gateway.serving.queue.book import Book
from gateway.serving.queue.entry import Entry, State
from gateway.serving.queue.store import QueueStore
from gateway.telemetry import queue as metrics

IDS_MAX = 256
"""In one call."""


class Workers(Protocol):
    """What this gateway sees of the workers: `reporting.Reporter`."""

    def has_any(self, pool: str) -> bool:
        """Whether one of them may take a stream now."""

    def sees(self, pool: str, worker: str) -> bool:
        """Whether this one may."""

    async def tell_again(self, pool: str) -> None:
        """Report them, though they were. Returns when the store knows, or does not answer."""


class Restoring:
    """Tells the store of what one gateway knows."""

    def __init__(self, store: QueueStore, book: Book, workers: Workers) -> None:
        self.workers = workers
        self._store = store
        self._book = book
        self._telling: dict[str, asyncio.Task[None]] = {}

    async def resume(self, pool: str, entries: list[Entry]) -> None:
        """Those of them that run do, on these workers. Raises LedgerUnavailable."""
        told = [
            (entry, run)
            for entry in entries
            if entry.state is State.HELD and not entry.is_busy and (run := entry.run()) is not None
        ]
        if not told:
            return
        runs = [run for _, run in told]
        call = asyncio.ensure_future(self._store.ask(lambda: self._store.queue.resume(pool, runs)))
        for entry, _ in told:
            entry.in_store = True
            entry.occupy(call)
        metrics.REENTERED.labels(what="place").inc(len(told))
        await asyncio.shield(call)

    async def tell_runs(self, pool: str) -> None:
        """All that run in this pool do. Raises LedgerUnavailable."""
        for name, entries in portions(self._book):
            if name == pool:
                await self.resume(pool, entries)

    async def tell(self, pool: str) -> None:
        """It knows no worker of this pool: for all who find that meanwhile, once. Returns when it
        does, or does not answer."""
        task = self._telling.get(pool)
        if task is None:
            task = self._telling[pool] = asyncio.create_task(self._tell(pool))
            task.add_done_callback(lambda _: self._telling.pop(pool))
        await asyncio.shield(task)

    async def _tell(self, pool: str) -> None:
        with suppress(LedgerUnavailable):
            await self.tell_runs(pool)
            await self.workers.tell_again(pool)


def portions(entries: Iterable[Entry]) -> Iterator[tuple[str, list[Entry]]]:
    """By pool, and no more in one than a call takes."""
    by_pool: defaultdict[str, list[Entry]] = defaultdict(list)
    for entry in entries:
        by_pool[entry.asked.pool].append(entry)
    for pool, of_pool in by_pool.items():
        for start in range(0, len(of_pool), IDS_MAX):
            yield pool, of_pool[start : start + IDS_MAX]
