"""A TCP relay in front of a server that a test can slow down, hang, cut or take away."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit, urlunsplit

_HOST = "127.0.0.1"
_TICK_S = 1e-6


class PausableProxy:
    """Passes bytes both ways until it is told otherwise. `target` is where new connections go."""

    def __init__(self, url: str) -> None:
        self._parts = urlsplit(url)
        self.target = (self._parts.hostname or _HOST, self._parts.port or 6379)
        self.delay_s = 0.0
        """By how much everything that the server says comes late."""
        self.port = 0
        self._passing = asyncio.Event()
        self._passing.set()
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        """The server's address by way of the proxy."""
        login = self._parts.netloc.rpartition("@")[0]
        netloc = f"{login}@{_HOST}:{self.port}" if login else f"{_HOST}:{self.port}"
        return urlunsplit(self._parts._replace(netloc=netloc))

    async def listen(self) -> None:
        """Take connections, at the same port each time."""
        if self._server is None:
            self._server = await asyncio.start_server(self._connected, _HOST, self.port)
            self.port = self._server.sockets[0].getsockname()[1]

    def hang(self) -> None:
        """Pass nothing more; connections are still accepted. What is sent meanwhile arrives when
        it is over, as with a stopped process."""
        self._passing.clear()

    async def cut(self) -> None:
        """Break every connection."""
        for connection in list(self._connections):
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def refuse(self) -> None:
        """Break every connection and take no new one."""
        if self._server is not None:
            self._server.close()
            self._server = None
        await self.cut()

    async def heal(self) -> None:
        """Pass everything again, at once."""
        self.delay_s = 0.0
        self._passing.set()
        await self.listen()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        writers = [writer]
        try:
            await self._passing.wait()
            behind, to_server = await asyncio.open_connection(*self.target)
            writers.append(to_server)
            async with asyncio.TaskGroup() as both:
                both.create_task(self._relay(reader, to_server))
                both.create_task(self._relay(behind, writer, answers=True))
        except (OSError, ExceptionGroup, asyncio.CancelledError):
            pass
        finally:
            for each in writers:
                each.transport.abort()
            self._connections.discard(task)

    async def _relay(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, *, answers: bool = False
    ) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time()
        while data := await source.read(65536):
            await self._passing.wait()
            # In order, also where the delay has just ended.
            due = max(due + _TICK_S, loop.time() + (self.delay_s if answers else 0.0))
            if due > loop.time() + _TICK_S:
                loop.call_at(due, sink.write, data)
            else:
                sink.write(data)
                await sink.drain()
        raise ConnectionResetError


@asynccontextmanager
async def pausable_proxy(url: str) -> AsyncIterator[PausableProxy]:
    """A proxy in front of the server at `url`, until the block ends."""
    proxy = PausableProxy(url)
    await proxy.listen()
    try:
        yield proxy
    finally:
        proxy.hang()
        await proxy.refuse()
