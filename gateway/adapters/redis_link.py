"""One greeted connection to a Redis server: bytes out, replies in, in the order of the calls.

Owns: the place of each reply. A call whose waiter has gone keeps its place, so its reply is read
and dropped, and never taken for another's.
"""

import asyncio
from collections import deque
from typing import Any, cast

import hiredis
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import InvalidResponse, ReadOnlyError, RedisError

from gateway.adapters.redis_replies import error_reply
from gateway.adapters.redis_url import Login

_NOTHING = object()
Argument = str | bytes | int | float
Waiting = tuple[asyncio.Future[Any], asyncio.TimerHandle | None]


def packed(arguments: tuple[Argument, ...]) -> bytes:
    """A command as it goes over the wire."""
    # Its stub says a tuple of one; it takes any.
    return cast("bytes", hiredis.pack_command(arguments))  # type: ignore[arg-type]


class Link(asyncio.Protocol):
    """Writes what was sent within one turn of the event loop at once.

    `lost` is done when the connection has ended; what then waits fails with ConnectionError.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._reader = hiredis.Reader(replyError=error_reply, notEnoughData=_NOTHING)
        self._waiting: deque[Waiting] = deque()
        self._out: list[bytes] = []
        self._transport: asyncio.Transport | None = None
        self.lost: asyncio.Future[None] = self._loop.create_future()
        self.heard_at = self._loop.time()
        self.writes = 0

    @property
    def in_flight(self) -> int:
        """Calls whose reply has not been read."""
        return len(self._waiting)

    def send(self, command: bytes, waiting: Waiting) -> None:
        """Queue one packed command; its reply goes to `waiting`. The link must not be lost."""
        if not self._out:
            self._loop.call_soon(self._flush)
        self._out.append(command)
        self._waiting.append(waiting)

    async def ask(self, *arguments: Argument) -> Any:
        """One command before the connection is used. Raises what the server replied, and
        ConnectionError where the connection ends."""
        if self.lost.done():
            raise RedisConnectionError("the connection to Redis ended")
        future = self._loop.create_future()
        self.send(packed(arguments), (future, None))
        return await future

    def close(self) -> None:
        """End the connection now, replies or not; harmless twice."""
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by the event loop."""
        # Not isinstance: uvloop's transports are none of asyncio's classes.
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Called by the event loop: hand out the replies that are complete."""
        self.heard_at = self._loop.time()
        reader = self._reader
        try:
            reader.feed(data)
            while (reply := reader.gets()) is not _NOTHING:
                self._hand_out(reply)
        except Exception as error:  # noqa: BLE001 - bytes that are no reply: nothing after them is
            self._end(InvalidResponse(type(error).__name__))

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by the event loop."""
        self._end(RedisConnectionError("the connection to Redis ended"))

    def _hand_out(self, reply: object) -> None:
        future, timer = self._waiting.popleft()
        if timer is not None:
            timer.cancel()
        if isinstance(reply, ReadOnlyError):
            # Demoted: whoever connects again finds the server that took over.
            self.close()
        if future.done():
            return
        if isinstance(reply, RedisError):
            future.set_exception(reply)
        else:
            future.set_result(reply)

    def _flush(self) -> None:
        if self._transport is not None and not self.lost.done():
            self._transport.write(b"".join(self._out))
            self.writes += 1
        self._out.clear()

    def _end(self, error: RedisError) -> None:
        if not self.lost.done():
            self.lost.set_result(None)
        self.close()
        while self._waiting:
            future, timer = self._waiting.popleft()
            if timer is not None:
                timer.cancel()
            if not future.done():
                future.set_exception(error)


async def greet(link: Link, login: Login, *, primary_only: bool) -> None:
    """Authenticate and choose the database. Raises what the server replied, and ReadOnlyError
    where a primary is needed and it is none."""
    hello: list[str | int] = ["HELLO", 2]
    if login.password is not None:
        hello += ["AUTH", login.username or "default", login.password]
    said = await link.ask(*hello, "SETNAME", "weir")
    about = dict(zip(said[::2], said[1::2], strict=False))
    if primary_only and about.get(b"role") != b"master":
        raise ReadOnlyError("the server is no primary")
    if login.database:
        await link.ask("SELECT", login.database)
