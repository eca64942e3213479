"""One connection that all calls of this process share, held open for as long as it is wanted.

Calls of one turn of the event loop go out in one write, so a busy gateway pays for few system
calls. redis-py has one connection for each concurrent call, at about 34 µs of CPU a call; here it
is about a fifth (`benchmarks/RESULTS.md`).

Promises: replies are never shifted, whoever is cancelled; a call fails with TimeoutError after
`timeout_s`, counted as `StoreTime` counts it, with ConnectionError at once where the server is
known to be away, and where more than `in_flight_max` wait; nothing is ever sent twice. A call that
failed may have taken effect.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from redis.exceptions import AuthenticationError, RedisError
from redis.exceptions import ConnectionError as RedisConnectionError

from gateway.adapters.redis_link import Argument, Link, Waiting, greet, packed
from gateway.adapters.redis_url import Login
from gateway.serving.store_time import HELD_UP_S, PARTS
from gateway.telemetry.log_context import outside_requests

IN_FLIGHT_MAX = 4096
CONNECT_S_MIN = 0.5
BACK_OFF_FIRST_S, BACK_OFF_MAX_S = 0.01, 0.2
STEADY_S = 1.0
"""A connection that ends sooner counts as one that failed: it is not made again at once."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Place:
    """Where a server listens: a host and port, or a path of a Unix socket."""

    host: str = ""
    port: int = 0
    path: str | None = None


class Pipe:
    """Connects at its first call, and again by itself until it is closed.

    `find` says where the server is now, and is asked before each connection; it may raise what
    redis-py raises. `primary_only` refuses a server that is a replica. `examine` looks at each new
    connection before anything is sent over it, for as long as it needs, and raises to refuse it.
    """

    def __init__(
        self,
        find: Callable[[], Awaitable[Place]],
        login: Login,
        *,
        timeout_s: float,
        in_flight_max: int = IN_FLIGHT_MAX,
        primary_only: bool = False,
        examine: Callable[[Link], Awaitable[None]] | None = None,
    ) -> None:
        self._find = find
        self._login = login
        self._timeout_s = timeout_s
        self._part_s = timeout_s / PARTS
        self._connect_s = max(CONNECT_S_MIN, timeout_s)
        self._in_flight_max = in_flight_max
        self._primary_only = primary_only
        self._examine = examine
        self._link: Link | None = None
        self._failure: Exception | None = None
        self._backlog: list[tuple[bytes, Waiting]] = []
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def is_up(self) -> bool:
        """Whether there is a connection now."""
        return self._link is not None and not self._link.lost.done()

    @property
    def is_known_away(self) -> bool:
        """Whether calls fail at once: connecting failed, and is tried again behind them."""
        return self._failure is not None

    @property
    def writes(self) -> int:
        """Writes on the present connection: one for all calls of a turn of the event loop."""
        return 0 if self._link is None else self._link.writes

    @property
    def in_flight(self) -> int:
        """Calls that wait, for a connection or for their reply."""
        return len(self._backlog) + (0 if self._link is None else self._link.in_flight)

    def call(self, *arguments: Argument) -> asyncio.Future[Any]:
        """Send one command and return its reply to come, as RESP2 has it.

        Raises ConnectionError here and now where the server is away or too many calls wait; the
        future raises TimeoutError, ConnectionError, or what the server replied.
        """
        loop = asyncio.get_running_loop()
        link = self._link
        if link is not None and link.lost.done():
            link = None
        if link is None:
            if self._failure is not None or self._closed:
                raise self._away()
            if self._task is None:
                self._task = loop.create_task(self._keep(), context=outside_requests())
        waits = len(self._backlog) if link is None else link.in_flight
        if waits >= self._in_flight_max:
            raise RedisConnectionError("too many calls to Redis wait for their reply")
        command = packed(arguments)
        future: asyncio.Future[Any] = loop.create_future()
        now_s = loop.time()
        due_s = now_s + self._part_s
        waiting = (future, loop.call_at(due_s, self._expire, future, now_s, due_s, PARTS))
        if link is None:
            self._backlog.append((command, waiting))
        else:
            link.send(command, waiting)
        return future

    def reconnect(self) -> None:
        """End the connection as if the server had; the next one is examined."""
        if self._link is not None:
            self._link.close()

    async def aclose(self) -> None:
        """End the connection; what waits fails with ConnectionError. Nothing connects again."""
        self._closed = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._link is not None:
            self._link.close()
            await self._link.lost
        self._refuse_backlog()

    def _away(self) -> RedisError:
        if self._closed:
            return RedisConnectionError("the connection to Redis is closed")
        if isinstance(self._failure, AuthenticationError):
            return AuthenticationError("Redis refuses the user or the password")
        return RedisConnectionError(f"Redis is away ({type(self._failure).__name__})")

    def _expire(
        self, future: asyncio.Future[Any], sent_s: float, due_s: float, parts_left: int
    ) -> None:
        """One part of its time is over, each counted from when the one before was noticed."""
        if future.done():
            return
        loop = asyncio.get_running_loop()
        link, now_s = self._link, loop.time()
        if parts_left > 1 or now_s - due_s > HELD_UP_S:
            # Sockets are read after timers: give the reply at least one turn to arrive.
            next_s = now_s + (self._part_s if parts_left > 1 else 0.001)
            loop.call_at(next_s, self._expire, future, sent_s, next_s, max(1, parts_left - 1))
            return
        future.set_exception(TimeoutError("Redis took too long"))
        if link is not None and link.heard_at < sent_s:
            # Nothing since the command went out, and as long again: no reply will come.
            loop.call_later(self._timeout_s, self._give_up, link, link.heard_at)

    def _give_up(self, link: Link, heard_at: float) -> None:
        if link is self._link and link.heard_at == heard_at and link.in_flight:
            link.close()

    async def _keep(self) -> None:
        """Connect, wait for the loss, connect again."""
        loop = asyncio.get_running_loop()
        wait_s = 0.0
        while True:
            try:
                async with asyncio.timeout(self._connect_s):
                    link = await self._connect()
                await self._look_at(link)
            except Exception as error:  # noqa: BLE001 - whatever ends an attempt, the next is made
                if self._failure is None:
                    logger.warning("Redis cannot be reached: %s", type(error).__name__)
                self._failure = error
                self._refuse_backlog()
                wait_s = min(max(2 * wait_s, BACK_OFF_FIRST_S), BACK_OFF_MAX_S)
                await asyncio.sleep(wait_s * random.uniform(0.5, 1.0))  # noqa: S311
                continue
            self._failure = None
            self._link = link
            for command, waiting in self._backlog:
                link.send(command, waiting)
            self._backlog.clear()
            began = loop.time()
            await asyncio.wait([link.lost])
            self._link = None
            if loop.time() - began > STEADY_S:
                wait_s = 0.0
            else:
                wait_s = min(max(2 * wait_s, BACK_OFF_FIRST_S), BACK_OFF_MAX_S)
                await asyncio.sleep(wait_s * random.uniform(0.5, 1.0))  # noqa: S311

    async def _connect(self) -> Link:
        loop = asyncio.get_running_loop()
        place = await self._find()
        tls = self._login.tls
        if place.path is not None:
            _, link = await loop.create_unix_connection(Link, place.path)
        else:
            _, link = await loop.create_connection(
                Link, place.host, place.port, ssl=tls, server_hostname=place.host if tls else None
            )
        try:
            await greet(link, self._login, primary_only=self._primary_only)
        except BaseException:
            link.close()
            raise
        return link

    async def _look_at(self, link: Link) -> None:
        try:
            if self._examine is not None:
                await self._examine(link)
        except BaseException:
            link.close()
            raise

    def _refuse_backlog(self) -> None:
        for _, (future, timer) in self._backlog:
            if timer is not None:
                timer.cancel()
            if not future.done():
                future.set_exception(self._away())
        self._backlog.clear()
