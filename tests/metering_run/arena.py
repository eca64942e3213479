"""The system of a run: embedded stores, gateways and workers as processes, and between them proxies
that the run can stop. Not `weir dev`: what dies is started again by the run alone."""

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import servers
from metering_run.processes import Process
from pausable_proxy import PausableProxy, pausable_proxy
from postgres_proxy import PostgresProxy, postgres_proxy

from backend.embedded import DataDir, EmbeddedPostgres, EmbeddedValkey, Launch
from backend.embedded.child import Store
from gateway.adapters.postgres import async_engine
from gateway.administration import Administration, NewPrice
from gateway.dev_children import answers
from gateway.domain.tenant import Model, RequestClass, Worker
from gateway.migrate import upgrade

MODEL = "simulated"
TENANT = "acme"
ACTOR = "a test"
GONE_MS = 10_000
"""A gateway that Redis has not seen for so long is taken for dead: a partition is longer."""
STREAM_INTERVALS = (1, 4, 2)
"""Of the workers: where a chunk holds more than a token, who counts chunks counts too little."""
NATURAL_TOKENS = "6000"
"""Of every answer: each is as long as it may be."""
GATEWAY_SETTINGS = {
    "WEIR_GATEWAY_GONE_MS": str(GONE_MS),
    "WEIR_SHUTDOWN_GRACE_MS": "3000",
    "WEIR_REDIS_TIMEOUT_MS": "1000",  # how soon a gateway decides is not asked here
    "WEIR_JOURNAL_SEGMENT_BYTES": str(256 * 1024),
    "WEIR_JOURNAL_BYTES_MAX": str(256 * 1024 * 1024),
    "WEIR_STALL_TIMEOUT_MS": "8000",
    "WEIR_FIRST_EVENT_TIMEOUT_MS": "12000",
    "WEIR_QUEUE_BATCH_WAIT_MS": "20000",
}


@dataclass
class Arena:
    """The processes by name, the ways between them, and where their files lie."""

    folder: Path
    redis_url: str
    database_url: str
    """The stores themselves, without a proxy."""
    processes: dict[str, Process] = field(default_factory=dict)
    ways: dict[str, Sequence[PausableProxy | PostgresProxy]] = field(default_factory=dict)
    """`redis` and `postgres`: all gateways' ways there; `redis-1`: one's; `worker-0`: all's."""
    gateway_urls: list[str] = field(default_factory=list)
    worker_urls: list[str] = field(default_factory=list)
    """The workers themselves, without a proxy."""
    secrets: dict[RequestClass, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    """Of every gateway, beside `GATEWAY_SETTINGS`."""

    def journal(self, gateway: str) -> Path:
        """A gateway's journal."""
        return self.folder / gateway / "journal"

    @property
    def control(self) -> Path:
        """Of the disk of gateway 0 (`controlled_storage`)."""
        return self.folder / "disk-control"

    def ledger(self, worker: str) -> Path:
        """A worker's own account."""
        return self.folder / f"{worker}.ledger"

    @property
    def gateways(self) -> list[Process]:
        """In order."""
        return [each for name, each in self.processes.items() if name.startswith("gateway-")]

    def environment(self) -> dict[str, str]:
        """For a command that speaks to the stores themselves."""
        return {
            **os.environ,
            "WEIR_DATABASE_URL": self.database_url,
            "WEIR_REDIS_URL": self.redis_url,
        }

    async def command(self, *arguments: str, kill_after_s: float | None = None) -> tuple[int, str]:
        """`weir …`: its status and what it said; perhaps killed before it is done."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "gateway", *arguments),
            env=self.environment(),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        said = asyncio.create_task(process.communicate())
        if kill_after_s is not None:
            await asyncio.wait({said}, timeout=kill_after_s)
            if process.returncode is None:
                process.kill()
        out, _ = await said
        assert process.returncode is not None
        return process.returncode, out.decode()


@asynccontextmanager
async def arena(
    folder: Path, *, gateways: int, workers: int, **settings: str
) -> AsyncIterator[Arena]:
    """All of it, serving, until the block ends."""
    data_dir = DataDir.open(folder / "stores")
    valkey, postgres = EmbeddedValkey(data_dir), EmbeddedPostgres(data_dir)
    made = Arena(folder, valkey.url, postgres.url, settings=settings)
    async with AsyncExitStack() as closing:
        closing.callback(data_dir.close)
        closing.callback(postgres.remove_socket_folder)
        closing.push_async_callback(_stop_all, made)
        for name, store in (("redis", valkey), ("postgres", postgres)):
            made.processes[name] = _store(name, store)
            made.processes[name].begin()
        for number in range(workers):
            await _add_worker(made, data_dir, number, closing)
        await asyncio.gather(*(each.serves() for each in made.processes.values()))
        await upgrade(made.database_url)
        await _seed(made)
        for number in range(gateways):
            await _add_gateway(made, data_dir, number, closing)
        for what in ("redis", "postgres"):
            ways = [made.ways[f"{what}-{number}"][0] for number in range(gateways)]
            made.ways[what] = ways
        await asyncio.gather(*(each.serves() for each in made.gateways))
        yield made


async def _stop_all(made: Arena) -> None:
    """Gateways, workers, stores: the reverse of how they were started."""
    for process in reversed(made.processes.values()):
        if process.runs:
            await process.stop(10.0)


def _store(name: str, store: Store) -> Process:
    async def is_ready() -> bool:
        return await asyncio.to_thread(store.is_ready)

    return Process(name, store.launch, is_ready, store.stop_signal)


async def _add_worker(made: Arena, data_dir: DataDir, number: int, closing: AsyncExitStack) -> None:
    name, port = f"worker-{number}", servers.free_port()

    def launch() -> Launch:
        return Launch(
            (
                *(sys.executable, "-m", "gateway", "backend", "simulated"),
                *("--port", str(port), "--model", MODEL, "--grace-ms", "1000"),
                *("--natural-output-tokens", NATURAL_TOKENS),
                *("--ledger-file", str(made.ledger(name))),
                *("--stream-interval", str(STREAM_INTERVALS[number % len(STREAM_INTERVALS)])),
            ),
            data_dir.log_path(name),
            environment=dict(os.environ),
        )

    made.worker_urls.append(f"http://127.0.0.1:{port}")
    made.processes[name] = Process(name, launch, answers(port, "/ready"))
    made.processes[name].begin()
    made.ways[name] = [await closing.enter_async_context(pausable_proxy(made.worker_urls[-1]))]


async def _add_gateway(
    made: Arena, data_dir: DataDir, number: int, closing: AsyncExitStack
) -> None:
    """Gateway 0 has a disk that the run can break. Not waited for."""
    name, port = f"gateway-{number}", servers.free_port()
    redis = await closing.enter_async_context(pausable_proxy(made.redis_url))
    postgres = await closing.enter_async_context(postgres_proxy(made.database_url))
    made.ways[f"redis-{number}"], made.ways[f"postgres-{number}"] = [redis], [postgres]
    made.journal(name).mkdir(parents=True)
    on_disk = (str(servers.TESTS / "disk_gateway.py"), str(made.control))
    program = on_disk if number == 0 else ("-m", "gateway", "serve")

    def launch() -> Launch:
        environment = {
            **os.environ,
            **GATEWAY_SETTINGS,
            **made.settings,
            "WEIR_DATABASE_URL": postgres.url,
            "WEIR_REDIS_URL": redis.url,
            "WEIR_JOURNAL_DIR": str(made.journal(name)),
            "WEIR_LISTEN": f"127.0.0.1:{port}",
        }
        return Launch((sys.executable, *program), data_dir.log_path(name), environment)

    made.gateway_urls.append(f"http://127.0.0.1:{port}")
    made.processes[name] = Process(name, launch, answers(port, "/readyz"))
    made.processes[name].begin()


async def _seed(made: Arena) -> None:
    """A tenant without limits, its keys, a price, and the fleet, at its proxies."""
    engine = async_engine(made.database_url, pooled=False)
    try:
        administration = Administration(engine)
        await administration.create_tenant(ACTOR, TENANT, "Acme")
        for each in RequestClass:
            _, made.secrets[each] = await administration.create_key(ACTOR, TENANT, each, each)
        model = Model(
            id=MODEL, context_tokens=8192, max_output_tokens=2048, default_output_tokens=256
        )
        await administration.register_model(ACTOR, model)
        for name, (way,) in ((n, w) for n, w in made.ways.items() if n.startswith("worker-")):
            worker = Worker(id=name, model=MODEL, url=way.url, engine="simulated")
            await administration.register_worker(ACTOR, worker)
        price = NewPrice(
            model=MODEL,
            provider="self",
            currency="USD",
            input_pico=200_000,
            cached_input_pico=50_000,
            output_pico=800_000,
        )
        await administration.set_price(ACTOR, price)
    finally:
        await engine.dispose()


def now_ms() -> int:
    """Unix time in ms."""
    return time.time_ns() // 1_000_000
