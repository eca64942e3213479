"""Which server a command of a key goes to: the only one, or its hash slot's primary in a cluster.

A cluster's map is learnt from its nodes, corrected by their redirections, and learnt again whenever
a call fails, behind the calls: a shard that is away costs the tenants of the others nothing.
"""

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

from redis.crc import key_slot
from redis.exceptions import (
    AskError,
    ClusterDownError,
    MovedError,
    RedisError,
    TryAgainError,
)
from redis.exceptions import ConnectionError as RedisConnectionError

from gateway.adapters.redis_link import Argument
from gateway.adapters.redis_pipeline import Pipe

SLOTS = 16384
REDIRECTIONS_MAX = 5
LEARN_EVERY_S = 0.05
TRY_AGAIN_S = 0.005
RETIRE_S = 2.0

logger = logging.getLogger(__name__)
Node = tuple[str, int]


class Route(Protocol):
    """Sends a command to the server that owns a key. Raises what `Pipe` and the server do."""

    def call(self, key: str, *arguments: Argument) -> Awaitable[Any]: ...

    async def primaries(self) -> list[tuple[Pipe, int]]:
        """Every server that decides, with a hash slot that it owns."""

    async def aclose(self) -> None: ...


class OneServer:
    """Everything goes to one server."""

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe

    def call(self, key: str, *arguments: Argument) -> asyncio.Future[Any]:
        """Send it, whatever the key."""
        return self._pipe.call(*arguments)

    async def primaries(self) -> list[tuple[Pipe, int]]:
        """The one; which slot does not matter."""
        return [(self._pipe, 0)]

    async def aclose(self) -> None:
        """Close the connection."""
        await self._pipe.aclose()


class ClusterRoute:
    """A Redis Cluster: one pipe for each primary."""

    def __init__(
        self, seeds: Sequence[Node], pipe_to: Callable[[str, int], Pipe], *, timeout_s: float
    ) -> None:
        self._seeds = tuple(seeds)
        self._timeout_s = timeout_s
        self._pipe_to = pipe_to
        self._pipes: dict[Node, Pipe] = {}
        self._owners: list[Node | None] = [None] * SLOTS
        self._known: tuple[Node, ...] = ()
        """Every node of the last map, replicas too."""
        self._learning: asyncio.Task[bool] | None = None
        self._learnt_at = -float("inf")
        self._retired: set[asyncio.Task[None]] = set()

    async def call(self, key: str, *arguments: Argument) -> Any:
        """Send it to the owner of the key's slot, and where that one says to."""
        slot = key_slot(key.encode())
        if not self._known:
            await self._learn()
        node = self._owners[slot]
        if node is None:
            self._learn_behind()
            raise ClusterDownError("no node of the cluster serves this slot")
        asked = False
        for _ in range(REDIRECTIONS_MAX):
            pipe = self._pipe(node)
            try:
                return await (_asking(pipe, arguments) if asked else pipe.call(*arguments))
            except MovedError as error:
                node, asked = (error.host or node[0], error.port), False
                self._owners[slot] = node
                self._learn_behind()
            except AskError as error:
                node, asked = (error.host or node[0], error.port), True
            except TryAgainError:
                await asyncio.sleep(TRY_AGAIN_S)
            except (RedisConnectionError, ClusterDownError, TimeoutError):
                self._learn_behind()
                raise
        raise ClusterDownError("the nodes of the cluster send each other's calls in a circle")

    async def primaries(self) -> list[tuple[Pipe, int]]:
        """Those of the map, each with its first slot. Raises ConnectionError where there is no
        map."""
        if not self._known:
            await self._learn()
        firsts: dict[Node, int] = {}
        for slot, node in enumerate(self._owners):
            if node is not None:
                firsts.setdefault(node, slot)
        return [(self._pipe(node), slot) for node, slot in firsts.items()]

    async def aclose(self) -> None:
        """Close every connection."""
        tasks = [*self._retired, *([self._learning] if self._learning else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*(pipe.aclose() for pipe in self._pipes.values()))

    def _pipe(self, node: Node) -> Pipe:
        pipe = self._pipes.get(node)
        if pipe is None:
            pipe = self._pipes[node] = self._pipe_to(*node)
        return pipe

    def _learn_behind(self) -> None:
        if self._learning is None and time.monotonic() - self._learnt_at > LEARN_EVERY_S:
            self._learning = asyncio.create_task(self._ask_around())

    async def _learn(self) -> None:
        if self._learning is None:
            self._learning = asyncio.create_task(self._ask_around())
        # Shielded: one caller that is cancelled must not end what others wait for.
        async with asyncio.timeout(self._timeout_s):
            learnt = await asyncio.shield(self._learning)
        if not learnt:
            raise RedisConnectionError("no node of the cluster tells its map")

    async def _ask_around(self) -> bool:
        try:
            nodes = random.sample(self._known, len(self._known)) + list(self._seeds)
            # Those that are connected first: one that hangs costs a time-out.
            for node in sorted(dict.fromkeys(nodes), key=lambda each: not self._pipe(each).is_up):
                try:
                    reply = await self._pipe(node).call("CLUSTER", "SLOTS")
                except (RedisError, TimeoutError) as error:
                    logger.info("a node of the cluster tells no map: %s", type(error).__name__)
                    continue
                self._take(reply, node)
                return True
            return False
        finally:
            self._learning = None
            self._learnt_at = time.monotonic()

    def _take(self, reply: list[list[Any]], teller: Node) -> None:
        owners: list[Node | None] = [None] * SLOTS
        known: dict[Node, None] = {}
        primaries: set[Node] = set()
        for first, last, *nodes in reply:
            found = [((each[0] or b"").decode() or teller[0], int(each[1])) for each in nodes]
            owners[first : last + 1] = [found[0]] * (last + 1 - first)
            known |= dict.fromkeys(found)
            primaries.add(found[0])
        if not known:
            return
        self._owners, self._known = owners, tuple(known)
        for node in [each for each in self._pipes if each not in primaries]:
            self._retire(self._pipes.pop(node))

    def _retire(self, pipe: Pipe) -> None:
        task = asyncio.create_task(_close_when_idle(pipe))
        self._retired.add(task)
        task.add_done_callback(self._retired.discard)


async def _close_when_idle(pipe: Pipe) -> None:
    """Let what is in flight have its reply."""
    try:
        async with asyncio.timeout(RETIRE_S):
            while pipe.in_flight:  # noqa: ASYNC110 - it counts calls, nobody signals their end
                await asyncio.sleep(TRY_AGAIN_S)
    except TimeoutError:
        pass
    finally:
        await pipe.aclose()


def _asking(pipe: Pipe, arguments: tuple[Argument, ...]) -> asyncio.Future[Any]:
    """The command right behind ASKING, on one connection: both are queued in one step."""
    asking = pipe.call("ASKING")
    asking.add_done_callback(lambda done: done.cancelled() or done.exception())
    return pipe.call(*arguments)
