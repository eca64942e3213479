"""A server that speaks Redis's protocol as far as a connection needs it, and does what a test says:
waits, answers by halves, says nonsense, ends."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import hiredis

Reply = bytes | None


class ScriptedRedis:
    """Answers HELLO and ECHO; `answers` decides on other commands, None is an empty bulk."""

    def __init__(self) -> None:
        self.port = 0
        self.password = b""
        self.role = b"master"
        self.holds = False
        """Read commands and answer none, until `release`."""
        self.commands: list[list[bytes]] = []
        self.connections = 0
        self.answers: dict[bytes, Callable[[list[bytes]], bytes]] = {}
        self._open: set[_Connection] = set()
        self._server: asyncio.Server | None = None

    async def listen(self, tls: ssl.SSLContext | None = None) -> None:
        """Take connections, at the same port each time."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: _Connection(self), "127.0.0.1", self.port, ssl=tls
        )
        self.port = self._server.sockets[0].getsockname()[1]

    def url(self, userinfo: str = "") -> str:
        return f"redis://{userinfo}127.0.0.1:{self.port}"

    def release(self) -> None:
        """Answer what was held, in order."""
        self.holds = False
        for connection in self._open:
            connection.flush()

    def say(self, data: bytes) -> None:
        """Write bytes to every connection, whatever was asked."""
        for connection in self._open:
            connection.write(data)

    def cut(self) -> None:
        """Break every connection, as a killed process does."""
        for connection in list(self._open):
            connection.abort()

    def refuse(self) -> None:
        """Break every connection and take no new one."""
        if self._server is not None:
            self._server.close()
        self.cut()

    def answer(self, command: list[bytes]) -> bytes:
        name = command[0].upper()
        if name == b"HELLO" and name not in self.answers:
            given = command[command.index(b"AUTH") + 2] if b"AUTH" in command else b""
            if given != self.password:
                return b"-WRONGPASS invalid username-password pair or user is disabled.\r\n"
            return b"*4\r\n" + bulk(b"role") + bulk(self.role) + bulk(b"proto") + b":2\r\n"
        if name in self.answers:
            return self.answers[name](command)
        return bulk(command[1] if len(command) > 1 else b"")


class _Connection(asyncio.Protocol):
    def __init__(self, server: ScriptedRedis) -> None:
        self._server = server
        self._reader = hiredis.Reader()
        self._held: list[bytes] = []
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._server.connections += 1
        self._server._open.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._server._open.discard(self)

    def data_received(self, data: bytes) -> None:
        self._reader.feed(data)
        while (command := self._reader.gets()) is not False:
            greeting = command[0] == b"HELLO"
            if not greeting:
                self._server.commands.append(command)
            self._held.append(self._server.answer(command))
            if greeting:
                self.flush()
        if not self._server.holds:
            self.flush()

    def flush(self) -> None:
        self.write(b"".join(self._held))
        self._held.clear()

    def write(self, data: bytes) -> None:
        self._transport.write(data)

    def abort(self) -> None:
        self._transport.abort()


def bulk(data: bytes) -> bytes:
    return b"$%d\r\n%s\r\n" % (len(data), data)


@asynccontextmanager
async def scripted_redis() -> AsyncIterator[ScriptedRedis]:
    """A server, until the block ends."""
    server = ScriptedRedis()
    await server.listen()
    try:
        yield server
    finally:
        server.refuse()
