"""Looks at the queues of pools, for people and metrics: each pool at most four times a second for
each gateway, however many ask."""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress

from gateway.serving.ports import Clock, LedgerUnavailable
from gateway.serving.queue_ports import PoolQueue, PoolUse

KEPT_MS = 250


class PoolLooks:
    """What was seen last of each pool. `is_open` says whether the store answers, as far as is
    known: one that does not is left alone."""

    def __init__(self, queue: PoolQueue, clock: Clock, *, is_open: Callable[[], bool]) -> None:
        self._queue = queue
        self._clock = clock
        self._is_open = is_open
        self._seen: dict[str, tuple[int, PoolUse | None]] = {}
        self._looking: dict[str, asyncio.Task[PoolUse | None]] = {}

    async def look(self, pool: str) -> PoolUse | None:
        """A pool as it was within the last 250 ms; None where the store does not tell."""
        seen = self._fresh().get(pool)
        if seen is not None:
            return seen[1]
        task = self._looking.get(pool)
        if task is None:
            task = self._looking[pool] = asyncio.create_task(self._look(pool))
        # Others wait for it too, so it goes on where one of them leaves.
        return await asyncio.shield(task)

    async def look_at(self, pools: Iterable[str]) -> dict[str, PoolUse | None]:
        """The same of several."""
        names = list(dict.fromkeys(pools))
        uses = await asyncio.gather(*map(self.look, names))
        return dict(zip(names, uses, strict=True))

    def _fresh(self) -> dict[str, tuple[int, PoolUse | None]]:
        since_us = self._clock.monotonic_us() - KEPT_MS * 1000
        self._seen = {pool: seen for pool, seen in self._seen.items() if seen[0] > since_us}
        return self._seen

    async def _look(self, pool: str) -> PoolUse | None:
        use: PoolUse | None = None
        try:
            if self._is_open():
                with suppress(LedgerUnavailable):
                    use = await self._queue.observe(pool)
            self._seen[pool] = self._clock.monotonic_us(), use
        finally:
            del self._looking[pool]
        return use
