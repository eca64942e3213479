"""A client that takes a stream more slowly than the worker makes it."""

import asyncio
import json
import socket
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from worker_process import WorkerClient, chat_body, connected, running_worker

TOKENS = 8_000
FIELDS: dict[str, Any] = {
    "max_tokens": TOKENS,
    "ignore_eos": True,
    "stream": True,
    "stream_options": {"include_usage": True, "continuous_usage_stats": True},
}
"""Nearly 500 bytes an event: 4 MB."""


@pytest.fixture
async def fast() -> AsyncIterator[WorkerClient]:
    """A worker of its own, which makes such a stream in two or three seconds."""
    with running_worker("simulated", "--model", "tiny", "--speed", "40") as process:
        async with connected(process) as client:
            yield client


class Reader:
    """A connection that takes next to nothing until it is read."""

    def __init__(self, host: str, port: int) -> None:
        self._socket = socket.socket()
        # Small buffers on both sides: what the kernel holds is little next to the stream.
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
        self._socket.settimeout(30)
        self._socket.connect((host, port))

    def ask(self, body: dict[str, Any]) -> None:
        """Send a chat request."""
        raw = json.dumps(body).encode()
        head = "POST /v1/chat/completions HTTP/1.1\r\nHost: w\r\nConnection: close\r\n"
        self._socket.sendall(f"{head}Content-Length: {len(raw)}\r\n\r\n".encode() + raw)

    def events(self) -> list[dict[str, Any]]:
        """All of the stream's events, read now."""
        parts = []
        while part := self._socket.recv(65_536):
            parts.append(part)
        self._socket.close()
        lines = b"".join(parts).split(b"\r\n")
        data = [line.strip() for line in lines if line.startswith(b"data: ")]
        assert data[-1] == b"data: [DONE]"
        return [json.loads(line[6:]) for line in data[:-1]]


async def largest_gap_s(client: WorkerClient, until: "asyncio.Task[Any]") -> float:
    """The longest that another client waits for a token while the task runs."""
    largest = 0.0
    body = chat_body("another", **FIELDS)
    async with client.session.post("/v1/chat/completions", json=body) as response:
        last = time.monotonic()
        while not until.done() and await response.content.readline():
            now = time.monotonic()
            largest, last = max(largest, now - last), now
        response.close()
    return largest


def content(events: list[dict[str, Any]]) -> list[str]:
    """The text of each event that has some."""
    deltas = [choice["delta"] for event in events for choice in event["choices"]]
    return [delta["content"] for delta in deltas if delta.get("content")]


async def test_a_stream_that_nobody_reads_is_not_written(fast: WorkerClient) -> None:
    """The worker stops writing and runs on: the request ends and is in the ledger, others have
    their tokens. Read later, the text is whole, in few events: what was not written was merged."""
    assert fast.url.host is not None
    assert fast.url.port is not None
    whole = await fast.chat_stream("slow", **FIELDS)
    assert len(content(whole.events)) > TOKENS / 2
    reader = Reader(fast.url.host, fast.url.port)
    reader.ask(chat_body("slow", rid="slow-reader", **FIELDS))
    recorded = asyncio.create_task(fast.ledger_of("slow-reader"))
    assert await largest_gap_s(fast, recorded) < 1.0
    entry = await recorded
    assert (entry["completion_tokens"], entry["finish_reason"]) == (TOKENS, "length")
    events = await asyncio.to_thread(reader.events)
    texts = content(events)
    assert "".join(texts) == whole.text
    assert events[-1]["usage"]["completion_tokens"] == TOKENS
    assert len(texts) < TOKENS / 4
