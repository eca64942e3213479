"""Redis as Weir uses it: scripts and a few commands, on one server, behind Sentinels, or in a
cluster. URLs: `gateway.adapters.redis_url`.

redis-py reads the URLs, asks the Sentinels and names the errors; calls go over connections of our
own (`redis_pipeline`, `redis_route`), because redis-py's are too dear for one decision a call, and
because its cluster client closes every node's connections when one call is cancelled while it
learns the map, and loads a forgotten script on all primaries, which fails while one is away.
"""

import asyncio
import hashlib
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Protocol, cast

from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel
from redis.backoff import NoBackoff
from redis.crc import key_slot
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import NoPermissionError, NoScriptError, RedisError, ResponseError

from gateway.adapters.redis_link import Link
from gateway.adapters.redis_pipeline import Pipe, Place
from gateway.adapters.redis_route import SLOTS, ClusterRoute, OneServer, Route
from gateway.adapters.redis_url import Address, Kind, parse_redis_url
from gateway.errors import StoreUnavailable

_log = logging.getLogger(__name__)
_PROBE = "redis.call('SET', KEYS[1], '1', 'PX', 1000) redis.call('DEL', KEYS[1]) return 1"


class Script(Protocol):
    """A script of the server: run by its digest, sent whole where the server has forgotten it."""

    def __call__(
        self, keys: Sequence[str], args: Sequence[str | int | bytes]
    ) -> Awaitable[Any]: ...


class StoreLost(RedisConnectionError):
    """The server has lost what it had acknowledged: nothing is decided before that is dealt
    with."""


class Guard(Protocol):
    """Sees whether the server has lost what it had acknowledged (`pulse`)."""

    beat_source: str
    """The script that `beat` runs."""

    async def examine(self, ask: Callable[..., Awaitable[Any]]) -> None:
        """Look at a new connection before it is used; `ask` sends one command over it. Raises to
        refuse it."""

    async def beat(self, run: Script) -> None:
        """Look at the connection in use. Raises StoreLost where a new one has to be examined."""


class RedisClient:
    """What the ledger and others ask of Redis.

    Every method raises RedisError, OSError or TimeoutError; then it may or may not have taken
    effect. Keys of one call share a hash slot. Connects when it is first used.
    """

    def __init__(self, kind: Kind, route: Route, guard: Guard | None = None) -> None:
        self.kind = kind
        self._route = route
        self._guard = guard
        self._pulse = self.register_script("" if guard is None else guard.beat_source)
        self._probe = self.register_script(_PROBE)

    def register_script(self, source: str) -> Script:
        """A script that can be called; nothing is sent yet."""
        digest = hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest()
        call = self._route.call

        async def run(keys: Sequence[str], args: Sequence[str | int | bytes] = ()) -> Any:
            try:
                return await call(keys[0], "EVALSHA", digest, len(keys), *keys, *args)
            except NoScriptError:
                # Sent whole to the server that lacks it, which then keeps it.
                return await call(keys[0], "EVAL", source, len(keys), *keys, *args)

        return run

    async def ping(self) -> bool:
        """Return where a server decides: it runs a script that writes. Of a cluster, any of them.

        A server that answers PING may still forbid scripts, be a replica, or be out of memory. With
        a guard one that has lost what it had acknowledged does not decide either, until a new
        connection to it was examined.
        """
        if self._guard is not None:
            return await self._beat(self._guard)
        tag = slot_tags() if self.kind is Kind.CLUSTER else None
        servers = await self._route.primaries()
        keys = [f"weir:ping:{{{tag[slot]}}}" if tag else "weir:ping" for _, slot in servers]
        await _any_of([self._probe([key], []) for key in keys])
        return True

    async def _beat(self, guard: Guard) -> bool:
        before = [pipe for pipe, _ in await self._route.primaries()]
        try:
            await guard.beat(self._pulse)
        except StoreLost:
            for pipe in before:
                pipe.reconnect()
            raise
        return True

    async def time(self) -> tuple[int, int]:
        """A server's time, in seconds and microseconds; of a cluster, of the primary whose clock
        is farthest from ours, among those that answer."""
        replies = await _any_of([_one(pipe, "TIME") for pipe, _ in await self._route.primaries()])
        times = [(int(seconds), int(micros)) for seconds, micros in replies]
        now_s = time.time()
        return max(times, key=lambda each: abs(each[0] + each[1] / 1e6 - now_s))

    async def info(self, section: str = "default") -> list[dict[str, str]]:
        """What each server says of itself. Raises where one does not answer."""
        servers = await self._route.primaries()
        replies = await asyncio.gather(*(_one(pipe, "INFO", section) for pipe, _ in servers))
        return [_fields(reply) for reply in replies]

    async def check_scripts(self) -> None:
        """Raise where a server does not run scripts whole, by digest, or does not load them."""
        for pipe, _ in await self._route.primaries():
            await pipe.call("EVAL", "return 1", 0)
            await pipe.call("EVALSHA", await pipe.call("SCRIPT", "LOAD", "return 1"), 0)

    async def get(self, name: str) -> bytes | None:
        """A key's value."""
        return cast("bytes | None", await self._route.call(name, "GET", name))

    async def set(self, name: str, value: str, *, nx: bool = False, px: int | None = None) -> bool:
        """Set a key, with `nx` only where there is none, to lapse after `px` ms. Whether it was."""
        options: list[str | int] = ["NX"] if nx else []
        if px is not None:
            options += ["PX", px]
        return await self._route.call(name, "SET", name, value, *options) is not None

    async def mget(self, keys: Sequence[str]) -> list[bytes | None]:
        """Several keys' values, each from its own server."""
        replies = await asyncio.gather(*(self.get(key) for key in keys))
        return list(replies)

    async def delete(self, name: str) -> bool:
        """Remove a key; whether it was there."""
        return bool(await self._route.call(name, "DEL", name))

    async def zadd(self, name: str, mapping: Mapping[str, float]) -> int:
        """Set members' scores; how many are new."""
        pairs = [part for member, score in mapping.items() for part in (score, member)]
        return int(await self._route.call(name, "ZADD", name, *pairs))

    async def zrem(self, name: str, *members: str) -> int:
        """Remove members; how many there were."""
        return int(await self._route.call(name, "ZREM", name, *members))

    async def zrange(
        self, name: str, start: int, end: int, *, withscores: bool = False
    ) -> list[Any]:
        """Members by rank, from the lowest score; with scores as pairs."""
        scores = ["WITHSCORES"] if withscores else []
        reply = await self._route.call(name, "ZRANGE", name, start, end, *scores)
        return _pairs(reply) if withscores else cast("list[bytes]", reply)

    async def zrevrange(self, name: str, start: int, end: int) -> list[bytes]:
        """Members by rank, from the highest score."""
        return cast("list[bytes]", await self._route.call(name, "ZREVRANGE", name, start, end))

    async def zrangebyscore(
        self, name: str, lowest: float | str, highest: float | str, *, withscores: bool = False
    ) -> list[Any]:
        """Members by score; with scores as pairs."""
        scores = ["WITHSCORES"] if withscores else []
        reply = await self._route.call(name, "ZRANGEBYSCORE", name, lowest, highest, *scores)
        return _pairs(reply) if withscores else cast("list[bytes]", reply)

    async def zremrangebyscore(self, name: str, lowest: float | str, highest: float | str) -> int:
        """Remove members by score; how many there were."""
        return int(await self._route.call(name, "ZREMRANGEBYSCORE", name, lowest, highest))

    async def aclose(self) -> None:
        """End every connection."""
        await self._route.aclose()


async def require_scripts(redis: RedisClient) -> None:
    """Raise StoreUnavailable where Redis answers that it runs no scripts; one that is away may come
    back, and is left to readiness. Without scripts there is no decision that holds."""
    try:
        await redis.check_scripts()
    except (NoPermissionError, ResponseError) as error:
        if isinstance(error, NoPermissionError) or str(error).startswith("ERR "):
            raise StoreUnavailable(
                "Redis does not run scripts, and every decision on a limit is one: EVAL, EVALSHA "
                f"and SCRIPT LOAD must be allowed ({type(error).__name__})"
            ) from error
    except (RedisError, OSError, TimeoutError) as error:
        _log.warning("Redis is away at the start: %s", type(error).__name__)


def connect_redis(url: str, *, timeout_ms: int, guard: Guard | None = None) -> RedisClient:
    """A client whose calls each fail after `timeout_ms`, and are never repeated: the caller decides
    what a failure means. `guard` is asked of every new connection, but not in a cluster. Raises
    SettingsError where the URL is none."""
    address = parse_redis_url(url)
    timeout_s = timeout_ms / 1000

    if address.kind is Kind.CLUSTER:

        def pipe_to(host: str, port: int) -> Pipe:
            return Pipe(_always(Place(host, port)), address.login, timeout_s=timeout_s)

        return RedisClient(address.kind, ClusterRoute(address.nodes, pipe_to, timeout_s=timeout_s))
    is_sentinel = address.kind is Kind.SENTINEL
    host, port = ("", 0) if address.path else address.nodes[0]
    pipe = Pipe(
        ask_sentinels(address, timeout_s)
        if is_sentinel
        else _always(Place(host, port, address.path)),
        address.login,
        timeout_s=timeout_s,
        primary_only=is_sentinel,
        examine=None if guard is None else _examined_by(guard),
    )
    return RedisClient(address.kind, OneServer(pipe), guard)


def _examined_by(guard: Guard) -> Callable[[Link], Awaitable[None]]:
    return lambda link: guard.examine(link.ask)


@lru_cache(maxsize=1)
def slot_tags() -> tuple[str, ...]:
    """For each hash slot a tag that lies in it: `{tag}` in a key puts the key there."""
    tags: dict[int, str] = {}
    number = 0
    while len(tags) < SLOTS:
        tags.setdefault(key_slot(b"%d" % number), str(number))
        number += 1
    return tuple(tags[slot] for slot in range(SLOTS))


async def _one(pipe: Pipe, *arguments: str) -> Any:
    return await pipe.call(*arguments)


async def _any_of(calls: Sequence[Awaitable[Any]]) -> list[Any]:
    """The replies of those that answer; raises the first failure where none does."""
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    replies = [each for each in outcomes if not isinstance(each, BaseException)]
    if not replies:
        raise next(
            (each for each in outcomes if isinstance(each, BaseException)),
            RedisConnectionError("the cluster has no primary"),
        )
    return replies


def _always(place: Place) -> Callable[[], Awaitable[Place]]:
    async def find() -> Place:
        return place

    return find


def ask_sentinels(address: Address, timeout_s: float) -> Callable[[], Awaitable[Place]]:
    """The primary as the first Sentinel that answers names it."""

    async def find() -> Place:
        own = address.sentinel_login
        sentinel = Sentinel(  # type: ignore[no-untyped-call]
            address.nodes,
            sentinel_kwargs={
                "socket_timeout": timeout_s,
                "socket_connect_timeout": timeout_s,
                "retry": Retry(NoBackoff(), 0),
                "username": own.username,
                "password": own.password,
                **address.sentinel_tls,
            },
        )
        try:
            return Place(*await sentinel.discover_master(address.service))
        finally:
            await asyncio.gather(*(each.aclose() for each in sentinel.sentinels))

    return find


def _pairs(reply: list[bytes]) -> list[tuple[bytes, float]]:
    return [(member, float(score)) for member, score in zip(reply[::2], reply[1::2], strict=True)]


def _fields(info: bytes) -> dict[str, str]:
    lines = (line.partition(":") for line in info.decode(errors="replace").splitlines())
    return {name: value for name, colon, value in lines if colon}
