"""HTTP/1.1 over a socket, so that what is sent may be wrong in every way; connections are kept."""

import asyncio
import contextlib
from dataclasses import dataclass

ANSWER_WITHIN_S = 30.0
LEAVES_WITHIN_S = 0.1
Headers = list[tuple[bytes, bytes]]


@dataclass(frozen=True)
class Reply:
    """One answer. `complete` is False where the connection ended within it."""

    status: int
    headers: dict[str, str]
    body: bytes
    complete: bool = True


class Broken(Exception):
    """No answer: the server closed, or said what is no HTTP."""


class Connection:
    """One connection that is opened again when it is needed."""

    def __init__(self, host: str, port: int) -> None:
        self._address = host, port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def exchange(self, request: bytes) -> Reply:
        """Send these bytes and read one answer. A kept connection that turns out to be closed is
        opened once more. Raises Broken, TimeoutError."""
        kept = self._streams is not None
        async with asyncio.timeout(ANSWER_WITHIN_S):
            try:
                return await self._once(request)
            except (Broken, OSError):
                self.close()
                if not kept:
                    raise
            return await self._once(request)

    async def leave(self, request: bytes, after_bytes: int) -> None:
        """Send these bytes, read up to so many for a moment, and go without a word."""
        self.close()
        async with asyncio.timeout(ANSWER_WITHIN_S):
            reader, writer = await self._open()
            writer.write(request)
            try:
                await writer.drain()
                if after_bytes:
                    await asyncio.wait_for(reader.readexactly(after_bytes), LEAVES_WITHIN_S)
            except (OSError, TimeoutError, asyncio.IncompleteReadError):
                pass
        self.close()

    async def _open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._streams is None:
            self._streams = await asyncio.open_connection(*self._address, limit=2**24)
        return self._streams

    async def _once(self, request: bytes) -> Reply:
        reader, writer = await self._open()
        writer.write(request)
        with contextlib.suppress(OSError):  # an early answer may lie in the socket all the same
            await writer.drain()
        reply = await _read(reader, with_body=not request.startswith(b"HEAD "))
        if not reply.complete or reply.headers.get("connection", "").lower() == "close":
            self.close()
        return reply

    def close(self) -> None:
        """Close; the next exchange opens a new one."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


async def _read(reader: asyncio.StreamReader, *, with_body: bool) -> Reply:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        status_line, *lines = head[:-4].decode("latin-1").split("\r\n")
        status = int(status_line.split(" ")[1])
    except (asyncio.IncompleteReadError, ValueError, IndexError) as error:
        raise Broken(f"no answer: {error}") from None
    if status == 100:
        return await _read(reader, with_body=with_body)
    headers = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    if not with_body or status in (204, 304):
        return Reply(status, headers, b"")
    try:
        return Reply(status, headers, await _body(reader, headers))
    except asyncio.IncompleteReadError as error:
        return Reply(status, headers, error.partial, complete=False)


async def _body(reader: asyncio.StreamReader, headers: dict[str, str]) -> bytes:
    if headers.get("transfer-encoding", "").lower() == "chunked":
        pieces = []
        while size := int(await reader.readuntil(b"\r\n"), 16):
            pieces.append(await reader.readexactly(size))
            await reader.readexactly(2)
        await reader.readexactly(2)
        return b"".join(pieces)
    if "content-length" in headers:
        return await reader.readexactly(int(headers["content-length"]))
    return await reader.read()
