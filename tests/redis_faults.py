"""Two gateways on one Valkey that a test may break: the first reaches it through a proxy."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import servers
from breakable_store import Store
from sequence_witness import ABORT_MS, Span, crowds, spans, told
from weir_dev import Json, Reply, WeirDev, weir_dev

TTL_MS = 2_000
RENEW_MS = 400
DECISION_S = 0.1
SERVED_S = 3.0
LIVE_LAST_MS = 10**15 - 1
"""Scores of the store's index up to here are when live leases lapse (`lua/head.lua`)."""
CUT_OFF, WITH_STORE = 0, 1
"""The gateways' numbers: behind the proxy, and not."""


@dataclass
class Timed:
    """An answer and how long it took, to its last byte."""

    reply: Reply
    began: float
    """On the monotonic clock."""
    took_s: float

    @property
    def ended(self) -> float:
        """On the monotonic clock."""
        return self.began + self.took_s

    @property
    def outcome(self) -> str:
        """`200`, or the code of the error."""
        return "200" if self.reply.status == 200 else str(self.reply.error["code"])


@dataclass
class TwoGateways(WeirDev):
    """`weir dev` with one gateway, and a second one behind the proxy."""

    urls: tuple[str, str] = ("", "")
    store: Store = field(default=None)  # type: ignore[assignment]
    asked: dict[str, int] = field(default_factory=dict)
    """Which gateway each request was sent to, as far as it was answered."""

    @property
    def ready(self) -> Json:
        return {**super().ready, "gateways": list(self.urls)}

    def timed(self, gateway: int = CUT_OFF, **fields: Any) -> Timed:
        """One chat completion of one token."""
        began = time.monotonic()
        reply = self.chat(gateway=gateway, **{"max_tokens": 1, **fields})
        self.note(reply.headers["x-request-id"], gateway)
        return Timed(reply, began, time.monotonic() - began)

    def served(self, gateway: int = CUT_OFF, within_s: float = SERVED_S, **fields: Any) -> Timed:
        """The same, asked until it is answered with 200: a store that got no core for a moment may
        be taken for one that is away."""
        deadline = time.monotonic() + within_s
        while (asked := self.timed(gateway, **fields)).outcome != "200":
            assert time.monotonic() < deadline, asked.reply.raw
            time.sleep(0.02)
        return asked

    def note(self, request_id: str, gateway: int) -> None:
        """That a gateway was asked so."""
        self.asked[request_id.replace("-", "")] = gateway

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

    def ran(self, since: int) -> list[Span]:
        """What the worker ran since then."""
        return spans(self.worker(f"/weir/ledger?since={since}")["entries"], self.asked)

    def assert_never_more(self, limit: int, since: int, *left: "Stream") -> None:
        """INV-2 by the worker's ledger: it never ran more since then. Excused are only `left`, and
        only where the engine went on with them for longer than a gateway waits for an abort."""
        ran = self.ran(since)
        late = {stream.request_id for stream in left if stream.ended_late(ran)}
        for at_ms, together in crowds(ran):
            counted = [each for each in together if each.request_id not in late]
            assert len(counted) <= limit, self.told(ran, too_many=at_ms)

    def told(self, ran: list[Span], **instants_ms: int) -> str:
        """For a failure's message: what ran, and what the gateways say of leases that lapsed."""
        names = ("weir_excess_sequences_seen_total", "weir_leases_recreated_total")
        counts = {name: [self.metric(name, at) for at in (CUT_OFF, WITH_STORE)] for name in names}
        return f"{counts}\n{told(ran, **instants_ms)}"

    def lapses_ms(self) -> int:
        """When the first of the tenant's leases lapses, if it is not renewed. Unix ms."""
        with self.store.client() as client:
            key = f"weir:{{{self.tenant}}}:due"
            held: Any = client.zrange(key, 0, LIVE_LAST_MS, byscore=True, withscores=True)
        return min(int(score) for _, score in held)

    @property
    def ledger_end(self) -> int:
        """The cursor behind everything that the worker has seen."""
        end: int = self.worker("/weir/ledger?since=9007199254740991")["next"]
        return end


class Stream:
    """A streamed chat completion, read in a thread of its own."""

    def __init__(self, system: TwoGateways, gateway: int, fields: Json) -> None:
        self.lines: list[bytes] = []
        self.request_id = ""
        self.left_ms: int | None = None
        self._gateway = gateway
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
        self.left_ms = self.left_ms or time.time_ns() // 1_000_000
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        with suppress(ConnectionError):
            self._done.result(10)

    def begun(self) -> None:
        """Wait for the first content."""
        self.until(lambda: b'"content":"' in b"".join(self.lines), "the first token")
        head = b"".join(self.lines).partition(b"x-request-id: ")[2]
        self.request_id = head.partition(b"\r\n")[0].decode().replace("-", "")
        self._system.note(self.request_id, self._gateway)

    def ended_late(self, ran: list[Span]) -> bool:
        """Whether the engine went on with it for longer than a gateway waits, once it had left."""
        (mine,) = (span for span in ran if span.request_id == self.request_id)
        return self.left_ms is not None and mine.ended_ms >= self.left_ms + ABORT_MS

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
    environment = {**short, "WEIR_REDIS_URL": store.url}
    try:
        with (
            weir_dev(folder, "--engine", "simulated", environment=environment) as system,
            _gateway(system, store, folder, short) as url,
        ):
            urls = (url, system.gateway())
            yield TwoGateways(system.data_dir, system.process, urls=urls, store=store)
    finally:
        store.stop()


@contextmanager
def _gateway(
    system: WeirDev, store: Store, folder: Path, short: Mapping[str, str]
) -> Iterator[str]:
    port = servers.free_port()
    environment = {
        **os.environ,
        **short,
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
            deadline = time.monotonic() + 120
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
