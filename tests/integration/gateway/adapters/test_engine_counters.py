"""Workers' counters are read and stored, by one gateway at a time."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from memory_ports import MemoryDirectory
from sqlalchemy.ext.asyncio import AsyncEngine
from tenant_examples import a_worker

from billing.postgres.engine_samples import samples_between
from gateway.adapters.engine_counters import EngineWitness, logger
from gateway.adapters.postgres import async_engine
from gateway.adapters.sglang import HttpEngine
from gateway.domain.tenant import EngineKind, Worker

ALWAYS = datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)


class CountingWorker:
    """Answers `/metrics` with what a test wrote down."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.text = ""
        self.status = 200
        self.asked = 0
        self.arrived = asyncio.Semaphore(0)
        self.held = asyncio.Event()
        self.held.set()
        self.url = ""

    def counts(self, requests: int) -> None:
        """So many it has served."""
        self.text = f'sglang:num_requests_total{{x="y"}} {requests}\n'

    async def metrics(self, _request: web.Request) -> web.Response:
        """The text as it was when it was asked for."""
        self.asked += 1
        self.arrived.release()
        text = self.text
        await self.held.wait()
        return web.Response(text=text, status=self.status)

    @property
    def worker(self) -> Worker:
        """As the directory has it."""
        return a_worker(self.name, url=self.url)

    @asynccontextmanager
    async def serving(self) -> AsyncIterator["CountingWorker"]:
        """Until the block ends."""
        app = web.Application()
        app.router.add_get("/metrics", self.metrics)
        async with TestServer(app) as server:
            self.url = str(server.make_url("")).rstrip("/")
            yield self


@pytest.fixture
async def worker() -> AsyncIterator[CountingWorker]:
    """One that serves."""
    async with CountingWorker("w1").serving() as serving:
        yield serving


@pytest.fixture
async def http() -> AsyncIterator[HttpEngine]:
    """A gateway's connections to workers."""
    engine = HttpEngine(connect_timeout_ms=300, abort_drain_ms=100)
    yield engine
    await engine.aclose()


@pytest.fixture
async def postgres(database_url: str) -> AsyncIterator[AsyncEngine]:
    """A pool on a database of this test's own."""
    engine = async_engine(database_url, pool_size=4)
    yield engine
    await engine.dispose()


async def stored(postgres: AsyncEngine, worker: str = "w1") -> list[tuple[int, int | None]]:
    """Lives and requests of its samples."""
    async with postgres.connect() as db:
        found = await samples_between(db, worker, *ALWAYS)
    return [(sample.life, sample.counters.requests) for sample in found]


async def test_samples_and_lives(
    worker: CountingWorker, http: HttpEngine, postgres: AsyncEngine
) -> None:
    """What it says is kept; what fell begins a life. Before an interval has passed nobody asks."""
    witness = EngineWitness(postgres, MemoryDirectory(worker.worker), http, "g", every_ms=0)
    for requests in (3, 8, 2):
        worker.counts(requests)
        assert await witness.sample() == 1
    patient = EngineWitness(postgres, MemoryDirectory(worker.worker), http, "h", every_ms=60_000)
    assert await patient.sample() == 0
    assert worker.asked == 3
    assert await stored(postgres) == [(1, 3), (1, 8), (2, 2)]


async def test_who_does_not_tell_hides_no_other(
    worker: CountingWorker, http: HttpEngine, postgres: AsyncEngine
) -> None:
    """One without `--enable-metrics`, one that is gone, one that speaks no SGLang, one that talks
    nonsense: none is stored, said once each, and the good one is."""
    worker.counts(5)
    async with (
        CountingWorker("silent").serving() as silent,
        CountingWorker("odd").serving() as odd,
    ):
        silent.status = 404
        odd.text = "sglang:num_requests_total NaN\n"
        gone = a_worker("gone", url="http://127.0.0.1:1")
        plain = a_worker("plain", url=silent.url, kind=EngineKind.OPENAI)
        workers = (silent.worker, worker.worker, odd.worker, gone, plain)
        witness = EngineWitness(postgres, MemoryDirectory(*workers), http, "g", every_ms=0)
        assert await witness.sample() == 1
        assert silent.asked == 1
        assert await witness.sample() == 1
    assert await stored(postgres) == [(1, 5), (1, 5)]
    for name in ("silent", "odd", "gone", "plain"):
        assert await stored(postgres, name) == []


async def test_who_read_long_ago_stores_nothing(
    worker: CountingWorker, http: HttpEngine, postgres: AsyncEngine
) -> None:
    """Two gateways; the first one's answer takes so long that the second has the next turn."""
    directory = MemoryDirectory(worker.worker)
    first, second = (EngineWitness(postgres, directory, http, g, every_ms=0) for g in "ab")
    worker.held.clear()
    worker.counts(1)
    slow = asyncio.create_task(first.sample())
    await worker.arrived.acquire()
    worker.counts(9)
    quick = asyncio.create_task(second.sample())
    await worker.arrived.acquire()
    worker.held.set()
    assert (await slow, await quick) == (0, 1)
    assert await stored(postgres) == [(1, 9)]


class Heard(logging.Handler):
    """Waits for what is logged."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.any = asyncio.Event()

    def emit(self, record: logging.LogRecord) -> None:
        """Keep it."""
        self.lines.append(record.getMessage())
        self.any.set()


async def test_it_goes_on_after_postgres_was_away(
    worker: CountingWorker, http: HttpEngine, postgres: AsyncEngine
) -> None:
    """One line in the log, and samples again as soon as it is back."""
    worker.counts(5)
    away = async_engine("postgresql://nobody@127.0.0.1:1/none", pool_size=1)
    witness = EngineWitness(away, MemoryDirectory(worker.worker), http, "g", every_ms=20)
    heard = Heard()
    logger.addHandler(heard)
    running = asyncio.create_task(witness.run())
    try:
        async with asyncio.timeout(10):
            await heard.any.wait()
            witness._postgres = postgres
            for _ in range(3):
                await worker.arrived.acquire()
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        logger.removeHandler(heard)
        await away.dispose()
    assert len(heard.lines) == 1
    assert (await stored(postgres))[:2] == [(1, 5), (1, 5)]
