"""Tells the pools' store what each worker may hold, and at once when one is lost.

Each gateway reports what it sees: a worker takes grants while any gateway finds it well. Reports
are good for `WELL_MS`, so that workers are not sent to when no gateway sees them.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Protocol

from gateway.domain import routing
from gateway.domain.pools import pool_of_worker
from gateway.domain.queue.capacity import SEEN_MS as WELL_MS
from gateway.domain.queue.capacity import WorkerRoom
from gateway.domain.worker import WorkerView
from gateway.serving.pool_workers import workers_of
from gateway.serving.ports import Clock, Fleet, LedgerUnavailable
from gateway.serving.queue.keeping import forever
from gateway.serving.queue.store import Watch
from gateway.serving.queue_ports import PoolQueue

REPORT_MS = 1_000
LOOK_S = 0.05
"""Between looks at the fleet: so soon a change is reported."""
Ceiling = tuple[int, int, int]


class Ceilings(Protocol):
    """What a worker may hold: learned, or said by its engine."""

    def of(self, view: WorkerView) -> Ceiling:
        """`sequences_max`, `batch_max` and `tokens_max`; very large where there is none."""


class Reporter:
    """The reports of one gateway."""

    def __init__(
        self, queue: PoolQueue, watch: Watch, fleet: Fleet, ceilings: Ceilings, clock: Clock
    ) -> None:
        self._queue = queue
        self._watch = watch
        self._fleet = fleet
        self._ceilings = ceilings
        self._clock = clock
        self._told: dict[str, dict[str, Ceiling]] = {}
        """By pool and worker, what the store was told last."""
        self._told_us: dict[str, int] = {}
        self._telling_again: dict[str, asyncio.Task[None]] = {}
        self._changed = asyncio.Event()

    def changed(self) -> None:
        """Look at the fleet now: a worker was lost or found."""
        self._changed.set()

    def has_any(self, pool: str) -> bool:
        """Whether a worker of the pool may take a stream now."""
        return bool(routing.eligible(workers_of(self._fleet, pool)))

    def sees(self, pool: str, worker: str) -> bool:
        """Whether this one may."""
        views = routing.eligible(workers_of(self._fleet, pool))
        return any(view.worker.id == worker for view in views)

    async def tell_again(self, pool: str) -> None:
        """Report the workers of a pool though they were; for all who ask meanwhile, once."""
        task = self._telling_again.get(pool)
        if task is None:
            task = asyncio.create_task(self._tell_again(pool))
            self._telling_again[pool] = task
        await asyncio.shield(task)

    async def run(self) -> None:
        """Report each second, and what changed at once; for ever."""
        await forever("the report of ceilings", self._turn)

    async def report(self) -> None:
        """Tell what has changed, and what was told too long ago. A pool that the store does not
        take is told again at the next look. Does not raise LedgerUnavailable."""
        seen = self._seen()
        for pool in {*seen, *self._told}:
            await self._report(pool, seen.get(pool, {}))

    async def _tell_again(self, pool: str) -> None:
        try:
            self._told_us.pop(pool, None)
            await self._report(pool, self._seen().get(pool, {}))
        finally:
            del self._telling_again[pool]

    async def _turn(self) -> None:
        while True:
            await self.report()
            self._changed.clear()
            try:
                async with asyncio.timeout(LOOK_S):
                    await self._changed.wait()
            except TimeoutError:
                continue

    def _seen(self) -> dict[str, dict[str, Ceiling]]:
        """The workers that may take a stream now, by pool."""
        seen: defaultdict[str, dict[str, Ceiling]] = defaultdict(dict)
        for view in routing.eligible(self._fleet.views()):
            seen[pool_of_worker(view.worker)][view.worker.id] = self._ceilings.of(view)
        return seen

    async def _report(self, pool: str, well: dict[str, Ceiling]) -> None:
        told, now_us = self._told.get(pool, {}), self._clock.monotonic_us()
        is_due = now_us - self._told_us.get(pool, -(10**12)) >= REPORT_MS * 1000
        if well == told and not (is_due and well):
            return
        lost = {worker: ceiling for worker, ceiling in told.items() if worker not in well}
        try:
            if lost:
                await self._tell(pool, lost, well_ms=0)
                self._told[pool] = {name: told[name] for name in told if name not in lost}
            if well:
                await self._tell(pool, well, well_ms=WELL_MS)
        except LedgerUnavailable:
            return
        self._told_us[pool] = now_us
        if well:
            self._told[pool] = well
        else:
            self._told.pop(pool, None)

    async def _tell(self, pool: str, workers: dict[str, Ceiling], *, well_ms: int) -> None:
        rooms = _rooms(workers.items())
        await self._watch.ask(lambda: self._queue.report(pool, rooms, well_ms=well_ms))


def _rooms(workers: Iterable[tuple[str, Ceiling]]) -> Sequence[WorkerRoom]:
    return [
        WorkerRoom(worker, sequences, batch, tokens, well_until_ms=0)
        for worker, (sequences, batch, tokens) in workers
    ]
