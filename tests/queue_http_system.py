"""The queue as its clients and its store show it: a `weir dev` whose worker has room for few."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import aiohttp
import msgspec
import servers
from pool_store import PoolStore
from weir_dev import Json, WeirDev, weir_dev
from worker_process import ended

from gateway.adapters.pool_queue import RedisPoolQueue
from gateway.adapters.redis import connect_redis
from gateway.serving.queue_ports import PoolUse

LONG = 480
"""The output tokens of a request of these tests, where nothing else is said."""
PROMPT = 32
"""And of its prompt, about."""


@dataclass
class Answer:
    """One answer, read whole, and when."""

    status: int
    headers: dict[str, str]
    raw: bytes
    began: float
    ended: float
    first_token: float | None = None

    @property
    def queue_ms(self) -> int:
        """How long it waited, as it says."""
        return int(self.headers["x-weir-queue-ms"])

    @property
    def id(self) -> str:
        """Of its ticket."""
        return self.headers["x-request-id"].replace("-", "")

    @property
    def error(self) -> Json:
        """OpenAI's error object."""
        found: Json = msgspec.json.decode(self.raw)["error"]
        return found


@dataclass
class Clients:
    """Many clients of one system, in one event loop."""

    system: WeirDev
    session: aiohttp.ClientSession
    tasks: list["asyncio.Task[Answer]"] = field(default_factory=list)

    def ask(
        self,
        token: str,
        *,
        gateway: str | int = 0,
        headers: dict[str, str] | None = None,
        **fields: Any,
    ) -> "asyncio.Task[Answer]":
        """A request under way. Tokens are read to its end."""
        asked = self._ask(token, gateway, headers or {}, fields)
        self.tasks.append(asyncio.create_task(asked))
        return self.tasks[-1]

    async def _ask(
        self, token: str, gateway: str | int, headers: dict[str, str], fields: Json
    ) -> Answer:
        url = gateway if isinstance(gateway, str) else self.system.gateway(gateway)
        body = self.system.body(**{"max_tokens": LONG, "min_tokens": LONG, **fields})
        body["min_tokens"] = min(body["min_tokens"], body["max_tokens"])
        sent = {"authorization": f"Bearer {token}", **headers}
        began = time.monotonic()
        async with self.session.post(
            url + "/v1/chat/completions", json=body, headers=sent
        ) as response:
            raw, first = b"", None
            async for piece in response.content.iter_any():
                raw += piece
                if first is None and b'"content":"' in raw:
                    first = time.monotonic()
            told = {name.lower(): value for name, value in response.headers.items()}
            return Answer(response.status, told, raw, began, time.monotonic(), first)


@asynccontextmanager
async def clients(system: WeirDev) -> AsyncIterator[Clients]:
    """Clients without a bound on connections; what they still ask at the end is given up."""
    connector = aiohttp.TCPConnector(limit=0)
    timeout = aiohttp.ClientTimeout(total=110)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        made = Clients(system, session)
        try:
            yield made
        finally:
            for task in made.tasks:
                task.cancel()
            await asyncio.gather(*made.tasks, return_exceptions=True)


@contextmanager
def queue_system(
    folder: Path,
    *,
    slots: int,
    tokens: int = LONG,
    gateways: int = 1,
    speed: float = 4.0,
    **environment: str,
) -> Iterator[WeirDev]:
    """Gateways before one simulated worker whose memory holds `slots` requests of so many output
    tokens: what there is more of waits. Their environment is `WEIR_` + the names given."""
    kv_tokens = round((slots + 0.5) * (tokens + PROMPT) / 0.95)
    flags = f"--kv-tokens {kv_tokens} --speed {speed} --disable-radix-cache"
    before = dict(os.environ)
    os.environ.update({f"WEIR_{name}": value for name, value in environment.items()})
    try:
        with weir_dev(
            folder, "--engine", "simulated", "--gateways", str(gateways), "--worker-flags", flags
        ) as system:
            yield system
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextmanager
def one_more_gateway(system: WeirDev, folder: Path) -> Iterator[tuple[str, int]]:
    """A gateway that nobody starts again, its URL and process id, until the block ends."""
    port = servers.free_port()
    url = f"http://127.0.0.1:{port}"
    environment = {
        **os.environ,
        "WEIR_DATABASE_URL": system.ready["database_url"],
        "WEIR_REDIS_URL": system.ready["redis_url"],
        "WEIR_JOURNAL_DIR": str(folder / "journal-of-one-more"),
        "WEIR_LISTEN": f"127.0.0.1:{port}",
    }
    command = [sys.executable, "-m", "gateway", "serve"]
    log_path = folder / "one-more.log"
    with (
        log_path.open("wb") as log,
        ended(
            subprocess.Popen(command, env=environment, stdout=log, stderr=log, text=True)
        ) as process,
    ):
        deadline = time.monotonic() + 60
        while True:
            with suppress(OSError):
                if system.request("GET", url + "/readyz").status == 200:
                    break
            assert process.poll() is None, log_path.read_text()
            assert time.monotonic() < deadline, log_path.read_text()
            time.sleep(0.02)
        yield url, process.pid


@contextmanager
def store_of(system: WeirDev) -> Iterator[PoolStore]:
    """The pool of the system's model."""
    with PoolStore(system.ready["redis_url"], system.model).listening() as store:
        yield store


WAITS = {"max_queued": 2_000, "max_wait_ms": 100_000}
"""Of tenants, and so of keys that have none of their own."""


def new_tenant(system: WeirDev, request_class: str = "interactive", **limits: Any) -> WeirDev:
    """A tenant that may wait, with these limits beside, and a key of this class."""
    tenant = f"t-{uuid4().hex[:12]}"
    body = {"id": tenant, "name": "of a test"}
    made = system.admin("POST", "/admin/v1/tenants", body)
    assert made.status == 201, made.raw
    seen = replace(system, tenant=tenant, secrets={})
    put = system.admin("PUT", f"/admin/v1/tenants/{tenant}/limits", {**WAITS, **limits})
    assert put.status == 200, put.raw
    seen.secrets[tenant] = new_key(seen, request_class)
    until_limits(seen, {**WAITS, **limits}["max_queued"])
    return seen


def new_key(system: WeirDev, request_class: str) -> str:
    """One more key of the tenant, that every gateway knows, with the limits written before. It has
    none of its own."""
    path = f"/admin/v1/tenants/{system.tenant}/keys"
    made = system.admin("POST", path, {"name": uuid4().hex[:8], "class": request_class})
    assert made.status == 201, made.raw
    secret: str = made.json["secret"]
    deadline = time.monotonic() + 5
    for index in range(len(system.ready["gateways"])):
        url = system.gateway(index) + "/v1/limits"
        while True:
            shown = system.request("GET", url, token=secret)
            if shown.status == 200:
                break
            assert time.monotonic() < deadline, "the new key did not reach every gateway"
    return secret


def until_limits(system: WeirDev, max_queued: int) -> None:
    """Wait until every gateway has the tenant's limits."""
    deadline = time.monotonic() + 5
    for index in range(len(system.ready["gateways"])):
        while system.limits(gateway=index).get("tenant", {}).get("max_queued") != max_queued:
            assert time.monotonic() < deadline, "the limits did not reach every gateway"


async def until_waiting(store: PoolStore, count: int, within_s: float = 20) -> None:
    """Wait until so many wait for a place."""
    await servers.eventually(
        lambda: store.count_waiting() >= count, within_s=within_s, what=f"{count} wait"
    )


async def use_of(system: WeirDev) -> PoolUse:
    """The pool as gateways see it."""
    url = system.ready["redis_url"]
    client = connect_redis(url, timeout_ms=1_000)
    try:
        queue = RedisPoolQueue(client, url=url, gateway="seen", ttl_ms=1_000, timeout_ms=1_000)
        return await queue.observe(system.model)
    finally:
        await client.aclose()


async def at_rest(store: PoolStore, within_s: float = 5) -> None:
    """Nothing is left in the store on anybody's behalf."""
    with suppress(AssertionError):
        await servers.eventually(lambda: not store.left_behind(), within_s=within_s)
    assert not store.left_behind()
