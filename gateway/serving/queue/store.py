"""The store of the queues as the waiting room asks it, and whether it decides at all."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Protocol, TypeVar

from gateway.serving.ports import LedgerUnavailable
from gateway.serving.queue import refusals
from gateway.serving.queue.book import Book
from gateway.serving.queue_ports import PoolQueue
from gateway.serving.store_watch import MOMENT_S, StoreState

_BREATH_S = 0.005
"""Between two turns of what goes on behind the requests, however many ask for one."""
_LOOKED_AT_S = 0.15
"""While it is lost it is looked at more often than that, where this process keeps up."""
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
        self._wanted = asyncio.Event()
        self._lost_for_s = self._looked_at_s = 0.0

    @property
    def is_open(self) -> bool:
        """Whether it answers, as far as is known."""
        return self._watch.is_open

    async def until_ready(self, within_s: float) -> bool:
        """Whether it decides; waits so long where it is just coming back."""
        if not self.ready.is_set() and self._watch.state is not StoreState.AWAY:
            self._wanted.set()
            with suppress(TimeoutError):
                async with asyncio.timeout(within_s):
                    await self.ready.wait()
        return self.ready.is_set()

    async def until_wanted(self, within_s: float) -> None:
        """Return after this time, or as soon as somebody waits for it to be ready."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._wanted.wait()
                await asyncio.sleep(_BREATH_S)
        self._wanted.clear()

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
        """It did not answer. Where it is away for more than a moment, interactive requests that
        wait are told so; batch waits on. No moment is counted in which this process was held up,
        nor in which the store answers and is being told what it must know."""
        if self.is_open:
            return
        now_s = asyncio.get_running_loop().time()
        if self.ready.is_set():
            self.ready.clear()
            self._lost_for_s = 0.0
        elif self._watch.state is StoreState.AWAY:
            self._lost_for_s += min(now_s - self._looked_at_s, _LOOKED_AT_S)
        self._looked_at_s = now_s
        if self._lost_for_s >= MOMENT_S:
            self._book.stop_interactive(refusals.store_away)
