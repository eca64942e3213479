"""Workers as processes, and what tests ask of them over HTTP."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from yarl import URL

Json = dict[str, Any]


@dataclass
class WorkerProcess:
    """A running worker."""

    url: str
    process: subprocess.Popen[str]
    line: str
    """What it printed when it began to serve."""


def start_worker(*arguments: str, port: int = 0) -> subprocess.Popen[str]:
    """`weir backend …` on that port or a free one, perhaps not serving yet."""
    command = [sys.executable, "-m", "gateway", "backend", *arguments, "--port", str(port)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ)
    )


@contextmanager
def running_worker(*arguments: str) -> Iterator[WorkerProcess]:
    """A worker that serves, until the block ends."""
    with ended(start_worker(*arguments)) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert " at http://" in line, process.communicate(timeout=10)
        yield WorkerProcess(line.split(" at ")[1].strip(), process, line)


@contextmanager
def ended(process: subprocess.Popen[str]) -> Iterator[subprocess.Popen[str]]:
    """The process, until the block ends."""
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        try:
            process.wait(timeout=15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for pipe in (process.stdout, process.stderr):
            if pipe is not None and not pipe.closed:
                pipe.close()


def served_urls(worker: WorkerProcess, replicas: int) -> list[str]:
    """Where each of a worker's replicas serves, in the order of their lines."""
    assert worker.process.stdout is not None
    lines = [worker.line, *(worker.process.stdout.readline() for _ in range(replicas - 1))]
    return [line.split(" at ")[1].strip() for line in lines]


@dataclass
class Streamed:
    """A stream as it was read. `complete` is False where the connection broke before its end."""

    status: int
    events: list[Json] = field(default_factory=list)
    raw: list[bytes] = field(default_factory=list)
    done: bool = False
    complete: bool = False

    @property
    def text(self) -> str:
        """All content of choice 0."""
        return "".join(
            choice["delta"].get("content", "") if "delta" in choice else choice["text"]
            for event in self.events
            for choice in event.get("choices", [])
            if choice["index"] == 0
        )

    @property
    def finish_reason(self) -> str | None:
        """The last finish reason, None where there was none."""
        reasons = [
            choice["finish_reason"]
            for event in self.events
            for choice in event.get("choices", [])
            if choice["finish_reason"]
        ]
        return reasons[-1] if reasons else None

    @property
    def usage(self) -> Json | None:
        """The last usage."""
        usages = [event["usage"] for event in self.events if event.get("usage")]
        return usages[-1] if usages else None


class WorkerClient:
    """One test's connections to a worker."""

    def __init__(self, session: aiohttp.ClientSession, url: URL) -> None:
        self.session = session
        self.url = url

    async def get(self, path: str) -> Json:
        """A JSON document."""
        async with self.session.get(path) as response:
            assert response.status == 200, await response.text()
            parsed: Json = await response.json()
            return parsed

    async def post(self, path: str, body: object) -> tuple[int, str]:
        """Status and text of an answer. A body of bytes is sent as it is."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        async with self.session.post(path, data=data) as response:
            return response.status, await response.text()

    async def chat(self, text: str = "Name three rivers.", **fields: object) -> Json:
        """A whole chat completion that succeeds."""
        status, answer = await self.post("/v1/chat/completions", chat_body(text, **fields))
        assert status == 200, answer
        parsed: Json = json.loads(answer)
        return parsed

    async def stream(self, path: str, body: Json, *, chunks_max: int | None = None) -> Streamed:
        """Read a stream to its end, or leave after `chunks_max` events."""
        sent = {"stream": True, "stream_options": {"include_usage": True}, **body}
        async with self.session.post(path, data=json.dumps(sent)) as response:
            streamed = Streamed(response.status)
            try:
                async for line in response.content:
                    if line.startswith(b"data: "):
                        self._take(line, streamed)
                    if chunks_max is not None and len(streamed.events) >= chunks_max:
                        response.close()
                        return streamed
            except aiohttp.ClientPayloadError:
                return streamed
            streamed.complete = True
            return streamed

    async def chat_stream(
        self, text: str = "Name three rivers.", *, chunks_max: int | None = None, **fields: object
    ) -> Streamed:
        """A streamed chat completion."""
        body = chat_body(text, **fields)
        return await self.stream("/v1/chat/completions", body, chunks_max=chunks_max)

    async def abort(self, **body: object) -> None:
        """POST /abort_request, whose answer is always the same."""
        assert await self.post("/abort_request", body) == (200, "")

    async def load(self) -> Json:
        """The one rank's load."""
        rank: Json = (await self.get("/v1/loads"))["loads"][0]
        return rank

    async def eventually_load(self, *, within_s: float = 10.0, **wanted: int) -> float:
        """Wait until the load has these values. Returns the seconds it took."""
        began = time.monotonic()
        while time.monotonic() - began < within_s:
            load = await self.load()
            if all(load[name] == value for name, value in wanted.items()):
                return time.monotonic() - began
            await asyncio.sleep(0.005)
        raise AssertionError(f"wanted {wanted}, the load stayed {load}")

    async def metric(self, name: str) -> float:
        """A metric, over streams and whole answers where it tells them apart."""
        async with self.session.get("/metrics") as response:
            lines = (await response.text()).splitlines()
        found = [line for line in lines if line.startswith(name + "{")]
        assert found, name
        return sum(float(line.rpartition(" ")[2]) for line in found)

    async def eventually_metric(self, name: str, wanted: float, *, within_s: float = 10) -> None:
        """Wait until a metric has this value."""
        deadline = time.monotonic() + within_s
        while await self.metric(name) != wanted:
            assert time.monotonic() < deadline, f"{name} is {await self.metric(name)}"
            await asyncio.sleep(0.005)

    async def ledger_end(self) -> int:
        """The cursor behind everything recorded so far."""
        cursor: int = (await self.get("/weir/ledger?since=9007199254740991"))["next"]
        return cursor

    async def ledger(self, since: int) -> list[Json]:
        """Entries from a cursor on."""
        entries: list[Json] = (await self.get(f"/weir/ledger?since={since}"))["entries"]
        return entries

    async def ledger_of(self, rid: str) -> Json:
        """The entry of one rid, waiting for it."""
        for _ in range(2000):
            for entry in await self.ledger(0):
                if entry["rid"] == rid:
                    return entry
            await asyncio.sleep(0.005)
        raise AssertionError(f"no ledger entry of {rid}")

    @staticmethod
    def _take(line: bytes, streamed: Streamed) -> None:
        payload = line[6:].strip()
        if payload == b"[DONE]":
            streamed.done = True
        else:
            streamed.raw.append(payload)
            streamed.events.append(json.loads(payload))


def chat_body(text: str, **fields: object) -> Json:
    """A chat request at temperature 0."""
    messages = [{"role": "user", "content": text}]
    return {"model": "m", "messages": messages, "temperature": 0, "max_tokens": 8, **fields}


@asynccontextmanager
async def connected(worker: WorkerProcess) -> AsyncIterator[WorkerClient]:
    """A client with as many connections as it needs."""
    connector = aiohttp.TCPConnector(limit=0)
    timeout = aiohttp.ClientTimeout(total=110)
    async with aiohttp.ClientSession(
        worker.url, connector=connector, timeout=timeout, read_bufsize=2**20
    ) as session:
        yield WorkerClient(session, URL(worker.url))
