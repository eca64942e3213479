"""The store of the queues as the waiting room asks it, and whether it decides at all."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Protocol, TypeVar

from gateway.serving.ports import LedgerUnavailable
from gateway.serving.queue import refusals
from gateway.serving.queue.book import Book
from gateway.serving.queue_ports import PoolQueue
from gateway.serving.store_watch import StoreState

Reply = TypeVar("Reply")


class Watch(Protocol):
    """Whether the store answers: `store_watch.StoreWatch`, the one that the leases have."""

    @property
    def state(self) -> StoreState: ...

    @property
    def is_open(self) -> bool: ...

    async def ask(self, call: Callable[[], Awaitable[Reply]]) -> Reply: ...

    async def lives(self) -> bool: ...


class QueueStore:
    """Asks `queue`. `ready` is set while the store decides and knows what runs here: from its loss
    on, until it was told that again, nobody is let in."""

    def __init__(self, queue: PoolQueue, watch: Watch, book: Book) -> None:
        self.queue = queue
        self._watch = watch
        self._book = book
        self.ready = asyncio.Event()
        self.ready.set()

    @property
    def is_open(self) -> bool:
        """Whether it answers, as far as is known."""
        return self._watch.is_open

    async def until_ready(self, within_s: float) -> bool:
        """Whether it decides; waits so long where it is just coming back."""
        if not self.ready.is_set() and self._watch.state is not StoreState.AWAY:
            with suppress(TimeoutError):
                async with asyncio.timeout(within_s):
                    await self.ready.wait()
        return self.ready.is_set()

    async def ask(self, call: Callable[[], Awaitable[Reply]]) -> Reply:
        """The reply. Asked a second time where the store answers a ping: only that reply came too
        late, and repeating a step is safe. Raises LedgerUnavailable."""
        try:
            return await self._watch.ask(call)
        except LedgerUnavailable:
            if not await self._watch.lives():
                self.lost()
                raise
        return await self._watch.ask(call)

    def lost(self) -> None:
        """It did not answer. Where it is away, interactive requests that wait are told so; batch
        waits on."""
        if not self.is_open:
            self.ready.clear()
            self._book.stop_interactive(refusals.store_away)
