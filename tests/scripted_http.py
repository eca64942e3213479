"""An HTTP server of which a test wrote down what it answers, on a thread and a loop of its own: a
client that stalls does not stall it."""

import asyncio
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum


class Act(Enum):
    """What is neither bytes nor a wait."""

    HANG = "until the server is released"
    CLOSE = "the connection ends here"
    RESET = "the connection is reset here"


Step = bytes | float | Act
"""Bytes are sent, a float is waited for, in seconds."""
Script = Callable[[int], Sequence[Step]]
"""By the request's number, in order of arrival."""
STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nx-request-id: id-of-it\r\n"
    b"x-weir-worker: w-1\r\ntransfer-encoding: chunked\r\n\r\n"
)
END = b"0\r\n\r\n"


def event(payload: bytes) -> bytes:
    """One event of a stream, in a chunk of its own."""
    data = b"data: " + payload + b"\n\n"
    return b"%x\r\n%b\r\n" % (len(data), data)


def whole(status: int, body: bytes, content_type: str = "application/json") -> bytes:
    """An answer with a length."""
    head = f"HTTP/1.1 {status} X\r\ncontent-type: {content_type}\r\ncontent-length: {len(body)}"
    return head.encode() + b"\r\n\r\n" + body


@dataclass
class Arrived:
    """One request, and when all of it was there."""

    at_s: float
    head: bytes
    body: bytes
    connection: int
    written_s: list[float] = field(default_factory=list)
    """When each of the script's bytes went out."""


@dataclass
class ScriptedHttp:
    """A running one."""

    script: Script
    port: int = 0
    arrived: list[Arrived] = field(default_factory=list)
    connections: int = 0
    _released: asyncio.Event = field(default_factory=asyncio.Event)
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)

    @property
    def url(self) -> str:
        """Where it serves."""
        return f"http://127.0.0.1:{self.port}"

    async def wait_for(self, requests: int) -> None:
        """Until so many have arrived."""
        deadline_s = time.monotonic() + 10
        while len(self.arrived) < requests:
            assert time.monotonic() < deadline_s, len(self.arrived)
            await asyncio.sleep(0.005)

    def release(self) -> None:
        """What hangs goes on."""
        self._loop.call_soon_threadsafe(self._released.set)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, until it ends."""
        self.connections += 1
        connection = self.connections
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = head.lower().split(b"content-length:")[1].split(b"\r\n")[0]
                body = await reader.readexactly(int(length))
                number = len(self.arrived)
                self.arrived.append(Arrived(time.monotonic(), head, body, connection))
                for step in self.script(number):
                    if isinstance(step, bytes):
                        self.arrived[number].written_s.append(time.monotonic())
                    if await self._step(step, writer):
                        return
        except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
            return
        finally:
            writer.close()

    async def _step(self, step: Step, writer: asyncio.StreamWriter) -> bool:
        if isinstance(step, bytes):
            writer.write(step)
            await writer.drain()
        elif isinstance(step, float):
            await asyncio.sleep(step)
        elif step is Act.HANG:
            await self._released.wait()
        elif step is Act.RESET:
            linger = struct.pack("ii", 1, 0)
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            writer.transport.abort()
            return True
        return step is Act.CLOSE

    def run(self, started: threading.Event) -> None:
        """Serve until the loop is stopped. Runs on the thread."""
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self.serve, "127.0.0.1", 0))
        self.port = server.sockets[0].getsockname()[1]
        started.set()
        self._loop.run_forever()
        server.close()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0.01))
        self._loop.close()

    def stop(self) -> None:
        """End the thread's loop."""
        self._loop.call_soon_threadsafe(self._loop.stop)


@contextmanager
def scripted_http(script: Script | Sequence[Step]) -> Iterator[ScriptedHttp]:
    """Serve until the block ends; a sequence answers every request alike."""
    served = ScriptedHttp(script if callable(script) else lambda _: script)
    started = threading.Event()
    thread = threading.Thread(target=served.run, args=[started])
    thread.start()
    assert started.wait(5)
    try:
        yield served
    finally:
        served.stop()
        thread.join(5)
    assert not thread.is_alive()
