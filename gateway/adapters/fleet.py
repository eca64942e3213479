"""What this gateway knows of the workers: probed a few times a second, asked about themselves when
they come up and each minute, and from its own traffic."""

import asyncio
import contextlib
import logging
import random
from collections import Counter
from dataclasses import dataclass, field

import aiohttp
import msgspec

from gateway.adapters.sglang import HttpEngine
from gateway.domain.engine_facts import NOTHING_KNOWN, EngineFacts
from gateway.domain.tenant import EngineKind, Worker
from gateway.domain.worker import WorkerView
from gateway.serving.ports import Clock, Directory
from gateway.wire.server_info import read_server_info

FACTS_EVERY_MS = 60_000
FACTS_AGAIN_MS = 5_000
"""After an engine did not say what it is."""
_PROBE_S = 3.0
_FAILURES = (aiohttp.ClientError, OSError, TimeoutError, ValueError, msgspec.MsgspecError)
"""Of a probe. ValueError: an address that cannot even be asked for (its name, its encoding)."""
_log = logging.getLogger(__name__)


class _Load(msgspec.Struct):
    num_running_reqs: int = 0
    num_waiting_reqs: int = 0
    num_used_tokens: int | None = None
    max_total_num_tokens: int | None = None


class _Loads(msgspec.Struct):
    loads: list[_Load]


@dataclass
class _Known:
    healthy: bool = False
    running: int | None = None
    waiting: int | None = None
    kv_used_tokens: int | None = None
    kv_total_tokens: int | None = None
    reported_at_ms: int | None = None
    facts: EngineFacts = NOTHING_KNOWN
    facts_due_us: int = 0
    warned_of: set[str] = field(default_factory=set)


class ProbedFleet:
    """Implements `gateway.serving.ports.Fleet` by probing each worker of the directory.

    A worker is healthy from its first good probe on, until a probe fails or a stream reports that
    it could not be reached; a worker that is starting up is simply not healthy yet. What it says of
    itself (`/server_info`) is read before the first stream goes to it, again after it was away, and
    every 60 s; a worker that does not tell is healthy all the same.
    """

    def __init__(
        self, directory: Directory, engine: HttpEngine, clock: Clock, *, interval_ms: int = 400
    ) -> None:
        self._directory = directory
        self._engine = engine
        self._clock = clock
        self._interval_s = interval_ms / 1000
        self._known: dict[str, _Known] = {}
        self._in_flight: Counter[str] = Counter()
        self._probing: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def views(self, model: str | None = None) -> list[WorkerView]:
        """The workers of one model, or all."""
        return [self._view(worker) for worker in self._directory.workers(model)]

    def _view(self, worker: Worker) -> WorkerView:
        known = self._known.get(worker.id, _Known())
        age_ms = (
            None
            if known.reported_at_ms is None
            else max(0, self._clock.now_ms() - known.reported_at_ms)
        )
        return WorkerView(
            worker=worker,
            healthy=known.healthy,
            in_flight=self._in_flight[worker.id],
            running=known.running,
            waiting=known.waiting,
            kv_used_tokens=known.kv_used_tokens,
            kv_total_tokens=known.kv_total_tokens,
            load_age_ms=age_ms,
            engine=known.facts,
        )

    def opened(self, worker_id: str) -> None:
        """A stream of this gateway was opened on the worker."""
        self._in_flight[worker_id] += 1

    def closed(self, worker_id: str) -> None:
        """And has ended."""
        self._in_flight[worker_id] -= 1

    def failed(self, worker_id: str) -> None:
        """Not healthy until a probe succeeds."""
        known = self._known.setdefault(worker_id, _Known())
        if known.healthy:
            _log.warning("worker %s failed", worker_id)
        known.healthy = False
        # What comes back at its address may be another engine.
        known.facts_due_us = 0

    async def run(self) -> None:
        """Probe for ever; each worker on its own, so that a slow one delays no other."""
        while True:
            for worker in self._directory.workers():
                if worker.id not in self._probing:
                    self._probing.add(worker.id)
                    task = asyncio.create_task(self._probe(worker))
                    self._tasks.add(task)
                    task.add_done_callback(self._tasks.discard)
            await asyncio.sleep(self._interval_s * random.uniform(0.8, 1.2))  # noqa: S311 - jitter

    async def probe_all(self) -> None:
        """Probe every worker once."""
        await asyncio.gather(*(self._probe(worker) for worker in self._directory.workers()))

    async def _probe(self, worker: Worker) -> None:
        known = self._known.setdefault(worker.id, _Known())
        try:
            if worker.kind is EngineKind.SGLANG:
                await self._read_loads(worker, known)
                await self._read_facts(worker, known)
            else:
                await self._get(worker, "/v1/models")
            if not known.healthy:
                _log.info("worker %s is healthy", worker.id)
            known.healthy = True
        except _FAILURES:
            self.failed(worker.id)
        finally:
            self._probing.discard(worker.id)

    async def _read_loads(self, worker: Worker, known: _Known) -> None:
        # /ready is instant, where SGLang's /health generates a token and takes a second.
        await self._get(worker, "/ready")
        loads = msgspec.json.decode(await self._get(worker, "/v1/loads"), type=_Loads).loads
        known.running = sum(load.num_running_reqs for load in loads)
        known.waiting = sum(load.num_waiting_reqs for load in loads)
        used = [load.num_used_tokens for load in loads if load.num_used_tokens is not None]
        total = [
            load.max_total_num_tokens for load in loads if load.max_total_num_tokens is not None
        ]
        known.kv_used_tokens = sum(used) if used else None
        known.kv_total_tokens = sum(total) if total else None
        known.reported_at_ms = self._clock.now_ms()

    async def _read_facts(self, worker: Worker, known: _Known) -> None:
        now_us = self._clock.monotonic_us()
        if now_us < known.facts_due_us:
            return
        try:
            known.facts = read_server_info(await self._get(worker, "/server_info"))
        except _FAILURES as error:
            if not known.healthy:
                known.facts = NOTHING_KNOWN
            known.facts_due_us = now_us + FACTS_AGAIN_MS * 1000
            _warn(worker, known, f"it did not say what it is ({type(error).__name__})")
            return
        known.facts_due_us = now_us + FACTS_EVERY_MS * 1000
        if known.facts.cache_report is False:
            _warn(worker, known, "cached prompt tokens are not reported (--enable-cache-report)")
        if known.facts.priority_scheduling is False:
            _warn(worker, known, "priorities are off (--enable-priority-scheduling)")

    async def _get(self, worker: Worker, path: str) -> bytes:
        timeout = aiohttp.ClientTimeout(total=_PROBE_S)
        return await self._engine.ask(worker, path, timeout=timeout)

    async def aclose(self) -> None:
        """End the probes that are under way."""
        for task in list(self._tasks):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


def _warn(worker: Worker, known: _Known, what: str) -> None:
    """Once a worker."""
    if what not in known.warned_of:
        known.warned_of.add(what)
        _log.warning("worker %s: %s", worker.id, what)
