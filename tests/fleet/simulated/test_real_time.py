"""Several replicas of 250 running sequences keep real time in one process."""

import asyncio
import json
import selectors
import socket
import threading
import time
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
from worker_process import Json, chat_body, running_worker, served_urls

REPLICAS = 3
STREAMS = 250
WORDS = 2000
MEASURED_S = 3.0
TOLERANCE = 0.05
"""Promised: a step's mean time is the model's within so much."""


@dataclass
class Reader:
    """Takes bytes off many sockets and throws them away."""

    taken: int = 0

    def read(self, sockets: list[socket.socket], stop: threading.Event) -> None:
        """Until told to stop."""
        with selectors.DefaultSelector() as selector:
            for each in sockets:
                selector.register(each, selectors.EVENT_READ)
            while not stop.is_set():
                for key, _ in selector.select(timeout=0.1):
                    ready = key.fileobj
                    assert isinstance(ready, socket.socket)
                    chunk = ready.recv(65536)
                    self.taken += len(chunk)
                    if not chunk:
                        selector.unregister(ready)
                # Reads many tokens at once: it is not what is measured.
                stop.wait(0.02)


@contextmanager
def streaming(urls: list[str]) -> Iterator[Reader]:
    """Streams from each of the addresses, read by a thread."""
    fields: dict[str, Any] = {"stream": True, "min_tokens": 600, "max_tokens": 600}
    fields["stream_options"] = {"include_usage": True, "continuous_usage_stats": True}
    body = json.dumps(chat_body("word " * WORDS, **fields)).encode()
    head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n"
    sockets = []
    for url in urls:
        at = urllib.parse.urlparse(url)
        for _ in range(STREAMS):
            each = socket.create_connection((at.hostname, at.port))
            each.sendall(head % len(body) + body)
            sockets.append(each)
    reader, stop = Reader(), threading.Event()
    thread = threading.Thread(target=reader.read, args=(sockets, stop))
    thread.start()
    try:
        yield reader
    finally:
        stop.set()
        thread.join()
        for each in sockets:
            each.close()


async def load_of(session: aiohttp.ClientSession, url: str) -> Json:
    """The one rank's load."""
    async with session.get(f"{url}/v1/loads") as response:
        rank: Json = (await response.json())["loads"][0]
        return rank


async def all_running(session: aiohttp.ClientSession, urls: list[str]) -> None:
    """Wait until every stream runs."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        loads = [await load_of(session, url) for url in urls]
        if all(load["num_running_reqs"] == STREAMS for load in loads):
            return
        await asyncio.sleep(0.05)
    raise AssertionError([load["num_running_reqs"] for load in loads])


@dataclass(frozen=True)
class Processor:
    """What a process has had of it, and how long it waited for others' to end, in seconds."""

    used_s: float
    waited_s: float

    @classmethod
    def of(cls, pid: int) -> "Processor":
        """So far, its main thread."""
        with open(f"/proc/{pid}/schedstat", encoding="ascii") as stat:
            used_ns, waited_ns, _ = stat.read().split()
        return cls(int(used_ns) / 1e9, int(waited_ns) / 1e9)


async def test_real_time() -> None:
    """Over some seconds the steps take as long as the model says, added up, in each replica; and
    one core has room for all of them. What other processes took of it is not held against it."""
    with running_worker("simulated", "--replicas", str(REPLICAS)) as worker:
        urls = served_urls(worker, REPLICAS)
        async with aiohttp.ClientSession() as session:
            with streaming(urls) as reader:
                await all_running(session, urls)
                first, taken = Processor.of(worker.process.pid), reader.taken
                before = [await load_of(session, url) for url in urls]
                await asyncio.sleep(MEASURED_S)
                after = [await load_of(session, url) for url in urls]
                last = Processor.of(worker.process.pid)
                assert reader.taken > taken
            lag_ms = [await lag_of(session, url) for url in urls]
    used_s, waited_s = last.used_s - first.used_s, last.waited_s - first.waited_s
    tokens = tokens_a_second = 0.0
    for early, late in zip(before, after, strict=True):
        assert late["num_running_reqs"] == STREAMS
        moments = zip(early["decode_moments"], late["decode_moments"], strict=True)
        steps, sequences, step_us, *_ = [there - here for here, there in moments]
        took_us = (late["timestamp"] - early["timestamp"]) * 1e6
        print(f"{took_us / steps / 1000:.2f} ms a step, {step_us / steps / 1000:.2f} modelled")  # noqa: T201 # for who runs it with -s
        assert step_us * (1 - 3 * TOLERANCE) < took_us
        assert took_us - waited_s * 1e6 < step_us * (1 + 3 * TOLERANCE)
        tokens += sequences
        tokens_a_second += sequences / step_us * 1e6
    core = used_s / tokens * tokens_a_second
    print(f"{used_s / tokens * 1e6:.1f} us of processor a token, {core:.0%} of a core")  # noqa: T201 # for who runs it with -s
    print(f"waited {waited_s:.2f} s for a core; steps at most {lag_ms} ms late")  # noqa: T201 # for who runs it with -s
    assert core < 1.0


async def lag_of(session: aiohttp.ClientSession, url: str) -> float:
    """How late its steps end, by a replica's own account, in ms."""
    async with session.get(f"{url}/metrics") as response:
        lines = (await response.text()).splitlines()
    (line,) = [line for line in lines if line.startswith("weir_simulated_step_lag_ms{")]
    return round(float(line.rpartition(" ")[2]), 1)
