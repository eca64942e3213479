"""A real Redis Cluster, and a real primary with replica and Sentinel, of the embedded server."""

import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import redis

from backend.embedded import Launch, free_port, spawn, stop
from backend.embedded.binaries import valkey_server

PASSWORD = "cluster-secret"
SLOTS = 16384
NODE_TIMEOUT_MS = 500
SETTLED_WITHIN_S = 30.0

COMMON = f"""\
bind 127.0.0.1
protected-mode yes
requirepass {PASSWORD}
primaryauth {PASSWORD}
dir ./
appendonly no
save ""
maxmemory-policy noeviction
repl-diskless-sync-delay 0
daemonize no
logfile ""
"""
CLUSTERED = f"""\
cluster-enabled yes
cluster-config-file nodes.conf
cluster-node-timeout {NODE_TIMEOUT_MS}
cluster-require-full-coverage no
cluster-replica-validity-factor 0
"""
SENTINEL = f"""\
bind 127.0.0.1
protected-mode no
dir ./
sentinel monitor weir 127.0.0.1 {{port}} 1
sentinel auth-pass weir {PASSWORD}
sentinel down-after-milliseconds weir 300
sentinel failover-timeout weir 2000
"""


@dataclass
class Server:
    """One process of the embedded server, in a folder of its own."""

    folder: Path
    configuration: str
    options: tuple[str, ...] = ()
    password: str | None = PASSWORD
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it at its port, with what its folder holds; returns once it answers."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / "server.conf"
        if not path.exists():  # a Sentinel rewrites its own
            path.write_text(f"port {self.port}\n{self.configuration}")
        self.process = spawn(
            Launch(
                (str(valkey_server()), path.name, *self.options),
                self.folder / "log",
                environment={"LC_ALL": "C"},
                folder=self.folder,
            )
        )
        until(self._answers, f"the server at {self.port} answers")

    def kill(self) -> None:
        """End it as a crash would."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """End it, if it runs."""
        if self.process is not None:
            stop(self.process, subprocess.signal.SIGTERM)  # type: ignore[attr-defined]

    def ask(self, *command: str | int) -> Any:
        """One command, on a connection of its own."""
        with redis.Redis(port=self.port, password=self.password, socket_timeout=5) as client:
            return client.execute_command(*command)

    def _answers(self) -> bool:
        with suppress(redis.RedisError):
            return bool(self.ask("PING"))
        return False


@dataclass
class Cluster:
    """Three primaries, and a replica of each where asked for."""

    primaries: list[Server]
    replicas: list[Server]
    ids: dict[int, str]

    @property
    def servers(self) -> list[Server]:
        return self.primaries + self.replicas

    @property
    def url(self) -> str:
        places = ",".join(f"127.0.0.1:{server.port}" for server in self.servers)
        return f"redis+cluster://:{PASSWORD}@{places}"

    def owner(self, tag: str) -> Server:
        """The primary of a tag's slot, as the first server that answers has it."""
        for server in self.servers:
            with suppress(redis.ConnectionError):
                slot = server.ask("CLUSTER", "KEYSLOT", tag)
                return self._at(port_of_slot(server, slot))
        raise AssertionError("no server of the cluster answers")

    def slot(self, tag: str) -> int:
        return int(self.primaries[0].ask("CLUSTER", "KEYSLOT", tag))

    def forget_everything(self) -> None:
        """Empty every primary, scripts too."""
        for server in self.primaries:
            server.ask("FLUSHALL")
            server.ask("SCRIPT", "FLUSH")

    def is_settled(self) -> bool:
        """Every server that runs sees every slot served."""
        with suppress(redis.ConnectionError):
            return all(
                "cluster_state:ok" in text(server.ask("CLUSTER", "INFO"))
                and len(mapped(server)) == SLOTS
                for server in self.servers
                if server.process is not None and server.process.poll() is None
            )
        return False

    def _at(self, port: int) -> Server:
        return next(server for server in self.servers if server.port == port)


def until(holds: Callable[[], object], what: str, within_s: float = SETTLED_WITHIN_S) -> None:
    """Return once it holds; fail where that takes too long. Blocks."""
    deadline = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline, f"not within {within_s} s: {what}"
        time.sleep(0.01)


@contextmanager
def running_cluster(folder: Path, *, replicas: bool = False) -> Iterator[Cluster]:
    """A cluster, until the block ends."""
    count = 6 if replicas else 3
    servers = [
        Server(folder / str(n), f"{COMMON}{CLUSTERED}cluster-port {free_port()}\n")
        for n in range(count)
    ]
    try:
        for server in servers:
            server.start()
        ids = {server.port: text(server.ask("CLUSTER", "MYID")) for server in servers}
        cluster = Cluster(servers[:3], servers[3:], ids)
        _form(cluster)
        yield cluster
    finally:
        for server in servers:
            server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _form(cluster: Cluster) -> None:
    for n, server in enumerate(cluster.primaries):
        server.ask("CLUSTER", "SET-CONFIG-EPOCH", n + 1)
        server.ask("CLUSTER", "ADDSLOTSRANGE", SLOTS * n // 3, SLOTS * (n + 1) // 3 - 1)
    first, *others = cluster.servers
    for server in others:
        bus = int(server.configuration.rpartition("cluster-port ")[2])
        first.ask("CLUSTER", "MEET", "127.0.0.1", server.port, bus)
    names = set(cluster.ids.values())
    until(lambda: all(names <= known_to(server) for server in cluster.servers), "all have met")
    for primary, replica in zip(cluster.primaries, cluster.replicas, strict=False):
        replica.ask("CLUSTER", "REPLICATE", cluster.ids[primary.port])
    until(cluster.is_settled, "the cluster serves every slot")
    for replica in cluster.replicas:
        until(lambda r=replica: "master_link_status:up" in info(r), "the replica follows")  # type: ignore[misc]


@dataclass
class Watched:
    """A primary and its replica, watched by a Sentinel."""

    servers: Sequence[Server]
    sentinel: Server

    @property
    def url(self) -> str:
        return f"redis+sentinel://:{PASSWORD}@127.0.0.1:{self.sentinel.port}/weir/0"

    def primary(self) -> Server:
        """Whom the Sentinel names."""
        reply = self.sentinel.ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "weir")
        return next(server for server in self.servers if server.port == int(reply[1]))


@contextmanager
def running_sentinel(folder: Path) -> Iterator[Watched]:
    """A primary, a replica and a Sentinel, until the block ends."""
    primary = Server(folder / "primary", COMMON)
    follows = f"replicaof 127.0.0.1 {primary.port}\n"
    replica = Server(folder / "replica", COMMON + follows)
    watching = SENTINEL.format(port=primary.port)
    sentinel = Server(folder / "sentinel", watching, ("--sentinel",), password=None)
    started = [primary, replica, sentinel]
    try:
        primary.start()
        replica.start()
        until(lambda: "master_link_status:up" in info(replica), "the replica follows")
        sentinel.start()
        until(lambda: "slaves=1" in info(sentinel), "the Sentinel knows the replica")
        yield Watched((primary, replica), sentinel)
    finally:
        for server in reversed(started):
            server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def info(server: Server) -> str:
    """What a server says of itself, in its own form."""
    with redis.Redis(port=server.port, password=server.password, socket_timeout=5) as client:
        client.set_response_callback("INFO", text)
        return str(client.execute_command("INFO"))


def text(reply: object, **_: object) -> str:
    """A reply as text."""
    return reply.decode() if isinstance(reply, bytes) else str(reply)


def known_to(server: Server) -> set[str]:
    """Ids of the nodes that a server is connected to, its own included."""
    with redis.Redis(port=server.port, password=server.password) as client:
        client.set_response_callback("CLUSTER NODES", text)
        lines = str(client.execute_command("CLUSTER NODES")).splitlines()
    return {line.split()[0] for line in lines if "handshake" not in line}


def mapped(server: Server) -> dict[int, int]:
    """Port of the primary of each slot, as a server sees it."""
    with redis.Redis(port=server.port, password=server.password, socket_timeout=5) as client:
        client.set_response_callback("CLUSTER SLOTS", lambda reply, **_: reply)
        ranges = client.execute_command("CLUSTER SLOTS")
    return {slot: int(each[2][1]) for each in ranges for slot in range(each[0], each[1] + 1)}


def port_of_slot(server: Server, slot: int) -> int:
    """Port of a slot's primary, as a server sees it."""
    return mapped(server)[slot]
