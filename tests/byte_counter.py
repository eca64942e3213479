"""A host that counts what it is sent: the canary that stands for a provider, or for its network."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

ANSWER = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nx-request-id: req-77\r\n"
    b"set-cookie: a=b\r\nconnection: keep-alive\r\ntransfer-encoding: chunked\r\n\r\n"
)


def chunked(*events: bytes) -> bytes:
    """Server-sent events as one chunked body."""
    whole = b"".join(b"data: " + event + b"\n\n" for event in events)
    return f"{len(whole):x}\r\n".encode() + whole + b"\r\n0\r\n\r\n"


@dataclass
class ByteCounter:
    """What arrived. `reply` is written once a request's body has been read, then the connection
    stays open for the next."""

    port: int = 0
    connections: int = 0
    received: bytes = b""
    requests: int = 0
    reply: bytes = ANSWER + chunked(b'{"id":"x","choices":[]}', b"[DONE]")
    _writers: list[asyncio.StreamWriter] = field(default_factory=list)

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        self.connections += 1
        self._writers.append(writer)
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = await self._read(reader, None)
                lines = head.lower().split(b"\r\n")
                size = next(line for line in lines if line.startswith(b"content-length:"))
                await self._read(reader, int(size.partition(b":")[2]))
                self.requests += 1
                writer.write(self.reply)
                await writer.drain()

    async def _read(self, reader: asyncio.StreamReader, size: int | None) -> bytes:
        found = b""
        while size is None or len(found) < size:
            byte = await reader.read(1)
            if not byte:
                raise asyncio.IncompleteReadError(found, size)
            found += byte
            self.received += byte
            if size is None and found.endswith(b"\r\n\r\n"):
                return found
        return found

    def close(self) -> None:
        """Close what is open."""
        for writer in self._writers:
            writer.close()


@asynccontextmanager
async def counting_host(*, backlog: int = 100) -> AsyncIterator[ByteCounter]:
    """A running one."""
    counter = ByteCounter()
    server = await asyncio.start_server(counter.serve, "127.0.0.1", 0, backlog=backlog)
    counter.port = server.sockets[0].getsockname()[1]
    async with server:
        yield counter
        counter.close()
