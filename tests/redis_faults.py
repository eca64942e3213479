"""Two gateways on one Valkey that a test may break: the first reaches it through a proxy."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import redis
import servers
from pausable_proxy import PausableProxy
from weir_dev import Json, Reply, WeirDev, weir_dev

from backend.embedded import DataDir, EmbeddedValkey, running

TTL_MS = 2_000
RENEW_MS = 400
DECISION_S = 0.1
CUT_OFF, WITH_STORE = 0, 1
"""The gateways' numbers: behind the proxy, and not."""


class ProxyThread:
    """A PausableProxy in a thread of its own."""

    def __init__(self, url: str) -> None:
        self.proxy = PausableProxy(url)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self.run(self.proxy.listen)

    def run(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Do it in the proxy's own loop."""
        asyncio.run_coroutine_threadsafe(work(), self._loop).result(10)

    def hang(self) -> None:
        async def hang() -> None:
            self.proxy.hang()

        self.run(hang)

    def delay(self, seconds: float) -> None:
        async def delay() -> None:
            self.proxy.delay_s = seconds

        self.run(delay)

    def cut(self) -> None:
        self.run(self.proxy.cut)

    def refuse(self) -> None:
        self.run(self.proxy.refuse)

    def heal(self) -> None:
        self.run(self.proxy.heal)

    def close(self) -> None:
        self.hang()
        self.refuse()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@dataclass
class Store:
    """A Valkey at one address, whatever lies in it and whether it runs."""

    folder: Path
    proxy: ProxyThread = field(init=False)
    starts: int = 0

    def __post_init__(self) -> None:
        self._port = servers.free_port()
        self._running: Any = None
        self._data_dir: DataDir
        self.start()
        self.proxy = ProxyThread(self.url)

    def start(self, *, empty: bool = False) -> None:
        """Start it, on a folder of its own where it is to be empty."""
        if self._running is not None:
            self._running.__exit__(None, None, None)
            self._data_dir.close()
        if empty or self.starts == 0:
            self.starts += 1
        here = self.folder / f"valkey-{self.starts}"
        (here / "valkey").mkdir(parents=True, exist_ok=True)
        (here / "valkey" / "port").write_text(str(self._port))
        (here / "valkey" / "password").write_text("secret")
        self._data_dir = DataDir.open(here)
        self._valkey = EmbeddedValkey(self._data_dir)
        assert self._valkey.port == self._port
        self._running = running(self._valkey)
        self.process: subprocess.Popen[bytes] = self._running.__enter__()

    @property
    def url(self) -> str:
        """Its address, without the proxy."""
        return self._valkey.url

    @contextmanager
    def client(self) -> Iterator["redis.Redis"]:
        """A client of it, without the proxy."""
        with redis.Redis.from_url(self.url) as client:
            yield client

    def kill(self) -> None:
        """`kill -9`; `start` brings it back."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """The end."""
        self.proxy.close()
        with suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGCONT)
        self._running.__exit__(None, None, None)
        self._data_dir.close()


@dataclass
class Timed:
    """An answer and how long it took, to its last byte."""

    reply: Reply
    took_s: float

    @property
    def outcome(self) -> str:
        """`200`, or the code of the error."""
        return "200" if self.reply.status == 200 else str(self.reply.error["code"])


@dataclass
class TwoGateways(WeirDev):
    """`weir dev` with one gateway, and a second one behind the proxy."""

    urls: tuple[str, str] = ("", "")
    store: Store = field(default=None)  # type: ignore[assignment]

    @property
    def ready(self) -> Json:
        return {**super().ready, "gateways": list(self.urls)}

    def timed(self, gateway: int = CUT_OFF, **fields: Any) -> Timed:
        """One chat completion of one token."""
        began = time.monotonic()
        reply = self.chat(gateway=gateway, **{"max_tokens": 1, **fields})
        return Timed(reply, time.monotonic() - began)

    def words(self, gateway: int = CUT_OFF) -> tuple[int, list[str]]:
        """Status and words of `/readyz`."""
        reply = self.request("GET", self.gateway(gateway) + "/readyz")
        return reply.status, reply.json["degraded"]

    def metric(self, name: str, gateway: int = CUT_OFF) -> float:
        """The sum of a metric's samples, its labels left out."""
        reply = self.request("GET", self.gateway(gateway) + "/metrics")
        lines = reply.raw.decode().splitlines()
        samples = [line for line in lines if line.split("{")[0].split(" ")[0] == name]
        return sum(float(line.rpartition(" ")[2]) for line in samples)

    def streams(self, count: int, gateway: int = CUT_OFF, **fields: Any) -> "list[Stream]":
        """So many streams, each of which has begun."""
        opened = [Stream(self, gateway, fields) for _ in range(count)]
        for stream in opened:
            stream.begun()
        return opened

    def most_at_once(self, since: int) -> int:
        """The witness: how many sequences the worker ran at once since then."""
        seen = self.worker(f"/weir/ledger?since={since}")["entries"]
        edges = sorted(
            edge
            for entry in seen
            for edge in ((entry["started_at_ms"], 1), (entry["ended_at_ms"], -1))
        )
        most = now = 0
        for _, step in edges:
            now += step
            most = max(most, now)
        return most

    @property
    def ledger_end(self) -> int:
        """The cursor behind everything that the worker has seen."""
        end: int = self.worker("/weir/ledger?since=9007199254740991")["next"]
        return end


class Stream:
    """A streamed chat completion, read in a thread of its own."""

    def __init__(self, system: TwoGateways, gateway: int, fields: Json) -> None:
        self.lines: list[bytes] = []
        self.headers: dict[str, str] = {}
        self._system = system
        self._pool = ThreadPoolExecutor(1)
        self._done: Future[bytes] = self._pool.submit(self._read, gateway, fields)
        self._pool.shutdown(wait=False)

    def _read(self, gateway: int, fields: Json) -> bytes:
        received = b""
        with self._system.open_chat(gateway=gateway, stream=True, **fields) as connection:
            self._connection = connection
            while not received.endswith(b"0\r\n\r\n") and (data := connection.recv(65536)):
                received += data
                self.lines.append(data)
        return received

    def leave(self) -> None:
        """Go before it has ended: what it has not used of its reservation is left."""
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._done.result(10)

    def begun(self) -> None:
        """Wait for the first content."""
        self.until(lambda: b'"content":"' in b"".join(self.lines), "the first token")

    def grows(self) -> None:
        """Wait for more than there is now."""
        seen = len(self.lines)
        self.until(lambda: len(self.lines) > seen or self._done.done(), "another token")

    def until(self, holds: Callable[[], bool], what: str) -> None:
        """Wait for it, within a deadline."""
        deadline = time.monotonic() + 20
        while not holds():
            assert time.monotonic() < deadline, f"{what} did not come: {b''.join(self.lines)!r}"
            time.sleep(0.002)

    def ended(self) -> bytes:
        """All of it, once it has ended."""
        return self._done.result(60)


@contextmanager
def two_gateways(folder: Path) -> Iterator[TwoGateways]:
    """Both gateways with short leases, over one simulated worker, until the block ends."""
    short = {"WEIR_LEASE_TTL_MS": str(TTL_MS), "WEIR_LEASE_RENEW_MS": str(RENEW_MS)}
    store = Store(folder)
    before = dict(os.environ)
    os.environ.update(short, WEIR_REDIS_URL=store.url)
    try:
        with (
            weir_dev(folder, "--engine", "simulated") as system,
            _gateway(system, store, folder) as url,
        ):
            urls = (url, system.gateway())
            yield TwoGateways(system.data_dir, system.process, urls=urls, store=store)
    finally:
        os.environ.clear()
        os.environ.update(before)
        store.stop()


@contextmanager
def _gateway(system: WeirDev, store: Store, folder: Path) -> Iterator[str]:
    port = servers.free_port()
    environment = {
        **os.environ,
        "WEIR_DATABASE_URL": system.ready["database_url"],
        "WEIR_REDIS_URL": store.proxy.proxy.url,
        "WEIR_JOURNAL_DIR": str(folder / "journal-cut-off"),
        "WEIR_LISTEN": f"127.0.0.1:{port}",
        "WEIR_SHUTDOWN_GRACE_MS": "1000",
    }
    command = [sys.executable, "-m", "gateway", "serve"]
    url = f"http://127.0.0.1:{port}"
    with (folder / "cut-off.log").open("wb") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        try:
            deadline = time.monotonic() + 30
            while True:
                with suppress(OSError):
                    if system.request("GET", url + "/readyz").status == 200:
                        break
                assert process.poll() is None, (folder / "cut-off.log").read_text()
                assert time.monotonic() < deadline, (folder / "cut-off.log").read_text()
                time.sleep(0.02)
            yield url
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def of_a_new_tenant(system: TwoGateways, **limits: Any) -> TwoGateways:
    """The same gateways, seen by a tenant of one test's own with these limits."""
    seen = system.with_new_tenant()
    assert isinstance(seen, TwoGateways)
    seen = replace(seen)
    seen.set_limits(**limits)
    return seen
