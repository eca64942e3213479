"""A whole Weir for tests: `weir dev` as a user starts it, spoken to over HTTP alone."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.parse
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Barrier
from typing import Any, TypeVar
from uuid import uuid4

import asyncpg
import servers

Json = dict[str, Any]
T = TypeVar("T")
NO_LIMITS: Json = {"max_queued": 0, "max_wait_ms": 0}
WAITED_FOR = ("max_sequences", "tpm", "rpm", "monthly_budget", "max_queued")
"""Limits that `GET /v1/limits` shows as they were set."""


@dataclass(frozen=True)
class Reply:
    """One HTTP answer, read whole."""

    status: int
    headers: dict[str, str]
    raw: bytes

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.raw)

    @property
    def error(self) -> Json:
        """OpenAI's error object."""
        found: Json = self.json["error"]
        return found

    @property
    def events(self) -> list[Json]:
        """The JSON events of a stream, `[DONE]` left out."""
        return [
            json.loads(line[6:]) for line in self.raw.decode().splitlines() if line[:7] == "data: {"
        ]

    @property
    def text(self) -> str:
        """The content of all deltas."""
        return "".join(
            choice["delta"].get("content") or ""
            for event in self.events
            for choice in event.get("choices", ())
        )


@dataclass
class WeirDev:
    """A running `weir dev`, seen by one tenant."""

    data_dir: Path
    process: subprocess.Popen[bytes]
    tenant: str = "acme"
    secrets: dict[str, str] = field(default_factory=dict)
    """Keys of tenants that a test made."""

    @property
    def ready(self) -> Json:
        """`ready.json` as it is now."""
        found: Json = json.loads((self.data_dir / "ready.json").read_text())
        return found

    @property
    def model(self) -> str:
        """The served model."""
        name: str = self.ready["models"][0]
        return name

    def key(self, tenant: str | None = None, request_class: str = "interactive") -> str:
        """A tenant's key."""
        if (tenant or self.tenant) in self.secrets:
            return self.secrets[tenant or self.tenant]
        secret: str = self.ready["tenants"][tenant or self.tenant][request_class]
        return secret

    def with_new_tenant(self, limits: Json | None = None) -> "WeirDev":
        """The same system, seen by a tenant that nobody has used yet."""
        tenant = f"t-{uuid4().hex[:12]}"
        body = {"id": tenant, "name": "of a test", "limits": limits or {}}
        made = self.admin("POST", "/admin/v1/tenants", body)
        assert made.status == 201, made.raw
        made = self.admin(
            "POST", f"/admin/v1/tenants/{tenant}/keys", {"name": "k", "class": "interactive"}
        )
        assert made.status == 201, made.raw
        seen = replace(self, tenant=tenant, secrets={tenant: made.json["secret"]})
        deadline = time.monotonic() + 3
        for index in range(len(self.ready["gateways"])):
            url = seen.gateway(index) + "/v1/models"
            while self.request("GET", url, token=seen.key()).status != 200:
                assert time.monotonic() < deadline, "the new key did not reach every gateway"
        return seen

    def request(
        self,
        method: str,
        url: str,
        body: Json | bytes | None = None,
        *,
        token: str | None = None,
        headers: Json | None = None,
        timeout_s: float = 60,
    ) -> Reply:
        """One request to an absolute URL."""
        parts = urllib.parse.urlsplit(url)
        connection = http.client.HTTPConnection(
            parts.hostname or "", parts.port or 80, timeout=timeout_s
        )
        sent = {"content-type": "application/json", **(headers or {})}
        if token is not None:
            sent["authorization"] = f"Bearer {token}"
        data = json.dumps(body).encode() if isinstance(body, dict) else body
        try:
            connection.request(method, f"{parts.path}?{parts.query}".rstrip("?"), data, sent)
            response = connection.getresponse()
            raw = response.read()
        finally:
            connection.close()
        return Reply(
            response.status, {name.lower(): value for name, value in response.getheaders()}, raw
        )

    def gateway(self, index: int = 0) -> str:
        """A gateway's URL."""
        urls: list[str] = self.ready["gateways"]
        return urls[index % len(urls)]

    def post(
        self,
        body: Json | bytes,
        *,
        path: str = "/v1/chat/completions",
        gateway: int = 0,
        token: str | None = None,
        headers: Json | None = None,
    ) -> Reply:
        """Post to a tenant's endpoint."""
        url = self.gateway(gateway) + path
        return self.request("POST", url, body, token=token or self.key(), headers=headers)

    def chat(
        self,
        text: str = "Tell me of rivers.",
        *,
        gateway: int = 0,
        token: str | None = None,
        **fields: Any,
    ) -> Reply:
        """A chat completion."""
        return self.post(self.body(text, **fields), gateway=gateway, token=token)

    def body(self, text: str = "Tell me of rivers.", **fields: Any) -> Json:
        """The body of one, at temperature 0: a model that samples may end at any token."""
        return {
            "model": self.model,
            "messages": [{"role": "user", "content": text}],
            "max_tokens": 16,
            "temperature": 0,
            **fields,
        }

    @contextmanager
    def open_chat(self, **fields: Any) -> Iterator[socket.socket]:
        """A chat completion whose answer the test reads, or leaves, itself."""
        parts = urllib.parse.urlsplit(self.gateway(fields.pop("gateway", 0)))
        token = fields.pop("token", None) or self.key()
        payload = json.dumps(self.body(**fields)).encode()
        head = (
            f"POST /v1/chat/completions HTTP/1.1\r\nHost: weir\r\nAuthorization: Bearer {token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(payload)}\r\n\r\n"
        )
        with socket.create_connection((parts.hostname, parts.port), timeout=60) as connection:
            connection.sendall(head.encode() + payload)
            yield connection

    def admin(self, method: str, path: str, body: Json | None = None, *, gateway: int = 0) -> Reply:
        """An admin request."""
        token = self.ready["users"]["admin"]["token"]
        return self.request(method, self.gateway(gateway) + path, body, token=token)

    def set_limits(self, tenant: str | None = None, **limits: Any) -> None:
        """Replace a tenant's limits and wait until every gateway has them."""
        tenant = tenant or self.tenant
        body = {**NO_LIMITS, **limits}
        reply = self.admin("PUT", f"/admin/v1/tenants/{tenant}/limits", body)
        assert reply.status == 200, reply.raw
        deadline = time.monotonic() + 3
        for index in range(len(self.ready["gateways"])):
            while True:
                shown = self.limits(tenant, gateway=index).get("tenant", {})  # 503: not yet
                if shown and all(shown[n] == body.get(n) for n in WAITED_FOR):
                    break
                assert time.monotonic() < deadline, "limits did not reach every gateway"

    def limits(self, tenant: str | None = None, *, gateway: int = 0) -> Json:
        """`GET /v1/limits`."""
        url = self.gateway(gateway) + "/v1/limits"
        found: Json = self.request("GET", url, token=self.key(tenant)).json
        return found

    def leases(self, tenant: str | None = None) -> int:
        """Sequences that the tenant holds over all gateways."""
        held: int = self.limits(tenant)["tenant"]["sequences_running"]
        return held

    def worker(self, path: str, body: Json | None = None, *, index: int = 0) -> Any:
        """Ask a worker directly."""
        url = self.ready["workers"][index]["url"] + path
        reply = self.request("GET" if body is None else "POST", url, body)
        return reply.json if reply.raw else None

    def ledger(self) -> dict[str, Json]:
        """What the workers say they generated, by the gateway's request id."""
        found: dict[str, Json] = {}
        for index in range(len(self.ready["workers"])):
            for entry in self.worker("/weir/ledger", index=index)["entries"]:
                found[entry["rid"][:32]] = entry
        return found

    def running(self) -> int:
        """Sequences that the engines run now."""
        return sum(
            load["num_running_reqs"]
            for index in range(len(self.ready["workers"]))
            for load in self.worker("/v1/loads", index=index)["loads"]
        )

    async def sql(self, query: str, *arguments: object) -> list[asyncpg.Record]:
        """Rows of a query."""
        connection = await asyncpg.connect(self.ready["database_url"])
        try:
            rows: list[asyncpg.Record] = await connection.fetch(query, *arguments)
        finally:
            await connection.close()
        return rows

    async def record(self, request_id: str, *, within_s: float = 5.0) -> asyncpg.Record:
        """A request's usage record, once it is there."""
        deadline = time.monotonic() + within_s
        while True:
            rows = await self.sql(
                "SELECT * FROM usage_records WHERE request_id = $1::uuid", request_id
            )
            if rows:
                assert len(rows) == 1
                return rows[0]
            assert time.monotonic() < deadline, f"no usage record of {request_id}"

    def stop(self, timeout_s: float = 40) -> int:
        """Ctrl-C, and its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        try:
            return self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            raise


@contextmanager
def weir_dev(
    data_dir: Path,
    *options: str,
    environment: Mapping[str, str] | None = None,
    wait_s: float = 90,
) -> Iterator[WeirDev]:
    """`weir dev` with these options and, over this process's, these variables, until the block
    ends. They are its own: what is started beside it by another test has none of them."""
    log = (data_dir / "weir-dev.log").open("ab")
    port = str(servers.free_port())
    command = [sys.executable, "-m", "gateway", "dev", "--data-dir", str(data_dir), "--port", port]
    process = subprocess.Popen(
        [*command, *options],
        stdout=log,
        stderr=log,
        env={**os.environ, **(environment or {})},
        start_new_session=True,
    )
    system = WeirDev(data_dir, process)
    deadline = time.monotonic() + wait_s
    try:
        while not (data_dir / "ready.json").exists():
            assert process.poll() is None, Path(log.name).read_text()[-2000:]
            assert time.monotonic() < deadline, Path(log.name).read_text()[-2000:]
            time.sleep(0.05)
        yield system
    finally:
        log.close()
        system.stop()


def together(count: int, call: Callable[[int], T]) -> Sequence[T]:
    """`call(0)` to `call(count - 1)` at the same instant; results in order."""
    gate = Barrier(count)

    def one(index: int) -> T:
        gate.wait()
        return call(index)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(one, range(count)))
