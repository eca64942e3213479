"""What each worker may hold: memory as its engine says, latency as all gateways learned it.

Each second a gateway looks at the pools that it has streams in, and meets the others over each
pool's workers: it brings what it saw, and hears what all saw together. Where that is enough it
decides, at the same meeting (`learned.Record.met`). With the store away all stays as it is; a
store that came back empty begins with what the first gateway that comes knows.
"""

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress

from gateway.domain import routing
from gateway.domain.pools import pool_of_worker
from gateway.domain.queue.ceilings import NO_CEILING
from gateway.domain.queue.learned import Record
from gateway.domain.queue.learning import LatencyRule
from gateway.domain.queue.samples import Samples
from gateway.domain.queue.tickets import Band
from gateway.domain.tenant import EngineKind, Worker
from gateway.domain.worker import WorkerView
from gateway.serving.ports import Clock, Fleet, LedgerUnavailable
from gateway.serving.queue.keeping import forever
from gateway.serving.queue.pace import UNPACED, Pace
from gateway.serving.queue.reporting import Ceiling
from gateway.serving.queue.seen import StoreTime, WorkerSeen, facts_of
from gateway.serving.queue.store import Watch
from gateway.serving.queue_ceilings_ports import PoolCeilings
from gateway.serving.queue_ports import PoolQueue
from gateway.telemetry import ceilings as metrics

PERIOD_S = 1.0
_NONE = NO_CEILING, NO_CEILING, NO_CEILING


def rule_for(tpot_ms: int) -> LatencyRule:
    """How ceilings follow this target of interactive; batch alone is given half as much again."""
    return LatencyRule(tpot_us=tpot_ms * 1000, alone_tpot_us=tpot_ms * 1500)


class LearnedCeilings:
    """Implements `reporting.Ceilings`, for one gateway.

    An engine of which only OpenAI's HTTP is known may be a whole fleet behind one address, so it
    has no ceiling.
    """

    def __init__(
        self,
        queue: PoolQueue,
        store: PoolCeilings,
        watch: Watch,
        fleet: Fleet,
        clock: Clock,
        *,
        rule: LatencyRule | None = None,
    ) -> None:
        self.rule = rule or LatencyRule()
        self._queue = queue
        self._store = store
        self._watch = watch
        self._fleet = fleet
        self._clock = clock
        self._time = StoreTime(clock.now_ms(), clock.monotonic_us())
        self._seen: dict[str, WorkerSeen] = {}

    def of(self, view: WorkerView) -> Ceiling:
        """See `Ceilings`."""
        if view.worker.kind is EngineKind.OPENAI:
            return _NONE
        now_ms = self._time.at(self._clock.monotonic_us())
        facts, learned = facts_of(view), self._seen_of(view).learned
        ceilings = self.rule.ceilings(learned, facts, now_ms=now_ms)
        return ceilings.sequences_max, ceilings.batch_max, ceilings.tokens_max

    def pace(self, worker: Worker, band: Band) -> Pace:
        """Of a stream that is opened on the worker now."""
        seen = self._seen.get(worker.id)
        return UNPACED if seen is None else seen.pace(band, self._clock.monotonic_us())

    async def run(self) -> None:
        """Learn; for ever."""
        await forever("the learning of ceilings", self._turns)

    async def turn(self) -> None:
        """Look and meet once. A pool that the store does not answer for stays as it is. Does not
        raise LedgerUnavailable."""
        views = [each for each in self._fleet.views() if each.worker.kind is not EngineKind.OPENAI]
        self._forget({view.worker.id for view in views})
        pools: defaultdict[str, list[WorkerSeen]] = defaultdict(list)
        now_us = self._clock.monotonic_us()
        for view in views:
            if view.healthy or view.worker.id in self._seen:
                self._seen_of(view).probed(view, now_us)
        for view in routing.eligible(views):
            pools[pool_of_worker(view.worker)].append(self._seen_of(view))
        for pool, workers in pools.items():
            with suppress(LedgerUnavailable):
                if any(seen.streams.total() for seen in workers):
                    await self._look(pool, workers)
                await self._meet(pool, {seen.id: seen for seen in workers})
        for view in routing.eligible(views):
            sequences, batch, _ = self.of(view)
            metrics.SEQUENCES.labels(worker=view.worker.id).set(sequences)
            metrics.BATCH.labels(worker=view.worker.id).set(batch)

    async def _turns(self) -> None:
        while True:
            await self.turn()
            await asyncio.sleep(PERIOD_S)

    async def _look(self, pool: str, workers: list[WorkerSeen]) -> None:
        """Who waits in the pool, and how many run on each worker."""
        use = await self._watch.ask(lambda: self._queue.observe(pool))
        has_interactive = use.bands[Band.INTERACTIVE].requests > 0 or any(
            seen.streams[Band.INTERACTIVE] for seen in workers
        )
        for seen in workers:
            seen.look(use, has_interactive=has_interactive, now_us=self._clock.monotonic_us())

    async def _meet(self, pool: str, workers: Mapping[str, WorkerSeen]) -> None:
        brought = {name: seen.brings() for name, seen in workers.items()}
        met = await self._watch.ask(lambda: self._store.meet(pool, brought))
        now_us = self._clock.monotonic_us()
        self._time.set(met.now_ms, now_us)
        decided: dict[str, Record] = {}
        words: dict[str, str] = {}
        for name, seen in workers.items():
            seen.met(met.records[name])
            decision = seen.decides(met.records[name], now_us)
            if decision is not None:
                decided[name], words[name] = decision
        if not decided:
            return
        met = await self._watch.ask(lambda: self._store.meet(pool, decided))
        for name, word in words.items():
            workers[name].met(met.records[name])
            if name in met.taken:
                metrics.DECISIONS.labels(direction=word).inc()

    def _seen_of(self, view: WorkerView) -> WorkerSeen:
        seen = self._seen.get(view.worker.id)
        if seen is None:
            facts, now_ms = facts_of(view), self._time.at(self._clock.monotonic_us())
            learned = self.rule.begin(facts, now_ms=now_ms)
            seen = WorkerSeen(
                view.worker.id, self.rule, self._time, learned, Samples(learned.epoch), facts
            )
            self._seen[seen.id] = seen
        return seen

    def _forget(self, known: set[str]) -> None:
        for name in self._seen.keys() - known:
            del self._seen[name]
            with suppress(KeyError):
                metrics.forget(name)
