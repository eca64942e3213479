"""Keeps samples of what the engines themselves have counted: the witness of what is metered.

Each worker is read every five seconds by whichever gateway takes its turn; where turns are decided
is said in `billing.postgres.engine_samples`. Whatever fails here delays no request and no shipment:
an engine's counters only grow, so the next sample tells what a missing one would have, unless
the engine has begun again in between.
"""

import asyncio
import logging
import random
import time
from collections.abc import Collection

import aiohttp
import asyncpg
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine

from billing.domain.engine_counters import EngineCounters
from billing.postgres.engine_samples import Turn, store_sample, take_turns, thin_out
from gateway.adapters.sglang import HttpEngine
from gateway.domain.tenant import EngineKind, Worker
from gateway.serving.ports import Directory
from gateway.telemetry import metrics
from gateway.wire.prometheus_text import read_counters

EVERY_MS = 5_000
STORE_TIMEOUT_S = 5.0
THIN_OUT_EVERY_S = 3_600.0
_READ_S = 3.0
_SHARE = 0.8
"""Of the interval: who comes a little early still has its turn, and no two in one interval."""
_UNREAD = (aiohttp.ClientError, OSError, TimeoutError, ValueError)
_AWAY = (SQLAlchemyError, asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError)
logger = logging.getLogger(__name__)


class EngineWitness:
    """Reads and stores, for ever. Workers that do not speak SGLang's HTTP have no counters."""

    def __init__(
        self,
        postgres: AsyncEngine,
        directory: Directory,
        engine: HttpEngine,
        gateway_id: str,
        *,
        every_ms: int = EVERY_MS,
    ) -> None:
        self._postgres = postgres
        self._directory = directory
        self._engine = engine
        self._gateway_id = gateway_id
        self._every_ms = every_ms
        self._thin_out_at = time.monotonic() + THIN_OUT_EVERY_S * random.random()  # noqa: S311
        self._failing = False
        self._silent: set[str] = set()

    async def run(self) -> None:
        """Sample for ever; a store that is away is tried again at the next turn."""
        while True:
            began_s = time.monotonic()
            try:
                await self.sample()
                await self._thin_out()
                self._failing = False
            except _AWAY as error:
                if not self._failing:
                    logger.warning("witness: nothing stored (%s)", type(error).__name__)
                self._failing = True
            pause_s = self._every_ms / 1000 * random.uniform(0.9, 1.1)  # noqa: S311 - jitter
            await asyncio.sleep(max(0.01, began_s + pause_s - time.monotonic()))

    async def sample(self) -> int:
        """One round: every worker whose turn is this gateway's. Returns how many samples were
        stored. Raises what the driver raises."""
        workers = {
            worker.id: worker
            for worker in self._directory.workers()
            if worker.kind is EngineKind.SGLANG
        }
        self._silent &= workers.keys()
        turns = await self._take_turns(workers)
        stored = await asyncio.gather(
            *(self._sample(workers[turn.worker_id], turn) for turn in turns),
            return_exceptions=True,
        )
        for outcome in stored:
            if isinstance(outcome, BaseException):
                raise outcome
        return sum(outcome is True for outcome in stored)

    async def _take_turns(self, worker_ids: Collection[str]) -> list[Turn]:
        every_ms = int(self._every_ms * _SHARE)
        async with asyncio.timeout(STORE_TIMEOUT_S), self._postgres.begin() as db:
            return await take_turns(db, worker_ids, self._gateway_id, every_ms=every_ms)

    async def _sample(self, worker: Worker, turn: Turn) -> bool:
        counters = await self._read(worker)
        if counters is None:
            return False
        async with asyncio.timeout(STORE_TIMEOUT_S), self._postgres.begin() as db:
            stored = await store_sample(db, turn, self._gateway_id, counters)
        metrics.ENGINE_SAMPLES.labels(outcome="stored" if stored else "late").inc()
        return stored

    async def _read(self, worker: Worker) -> EngineCounters | None:
        """What it has counted; None where it does not say, which is logged once until it does."""
        timeout = aiohttp.ClientTimeout(total=_READ_S)
        try:
            text = await self._engine.ask(worker, "/metrics", timeout=timeout)
            counters = read_counters(text.decode())
        except _UNREAD as error:
            metrics.ENGINE_SAMPLES.labels(outcome="unread").inc()
            if worker.id not in self._silent:
                self._silent.add(worker.id)
                logger.warning(
                    "worker %s does not tell its counters (%s)", worker.id, type(error).__name__
                )
            return None
        self._silent.discard(worker.id)
        return counters

    async def _thin_out(self) -> None:
        if time.monotonic() < self._thin_out_at:
            return
        self._thin_out_at = time.monotonic() + THIN_OUT_EVERY_S
        async with asyncio.timeout(STORE_TIMEOUT_S), self._postgres.begin() as db:
            await thin_out(db)
