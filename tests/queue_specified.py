"""What the specification of a pool's queue makes of what a store is given, and shows of itself."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import uuid4

import redis.asyncio
from queue_shares import shares_of

from gateway.adapters.pool_queue_messages import channel_of
from gateway.adapters.pool_queue_records import message
from gateway.adapters.pool_queue_scripts import keys_of
from gateway.adapters.redis import RedisClient
from gateway.domain.queue.pool import Pool
from gateway.domain.queue.tickets import Band, Message, Ticket
from gateway.serving.queue_ports import BandUse, PoolUse, Wish


@dataclass
class PoolClock:
    """A server's clock, and a pool's time by it: that goes on from where it was when the clock has
    stepped back."""

    clock_ms: int
    shift_ms: int = 0
    last_ms: int = 0

    def now(self) -> int:
        """The pool's time of a step now."""
        now_ms = self.clock_ms + self.shift_ms
        if now_ms < self.last_ms:
            self.shift_ms += self.last_ms - now_ms
            now_ms = self.last_ms
        self.last_ms = now_ms
        return now_ms

    def forget(self) -> None:
        """The pool was lost."""
        self.shift_ms = self.last_ms = 0


def specified_ticket(wish: Wish, gateway: str, now_ms: int) -> Ticket:
    """A wish, once the store has given it its times."""
    return Ticket(
        id=wish.id,
        tenant=wish.tenant,
        gateway=gateway,
        band=wish.band,
        sequences=wish.sequences,
        need_tokens=wish.need_tokens,
        cost=wish.cost,
        weight=wish.weight,
        entered_ms=now_ms - wish.waited_ms,
        deadline_ms=now_ms + wish.wait_ms,
        promote_ms=now_ms + wish.promote_after_ms,
        taken_back=wish.taken_back,
        lot=wish.lot,
    )


def specified_use(pool: Pool, now_ms: int) -> PoolUse:
    """What `observe` is to show."""
    running = sum(place.ticket.cost for place in pool.places.values())
    bands, ahead = {}, 0
    for band in Band:
        waiting = [t for tickets in pool.lines[band].waiting.values() for t in tickets]
        ahead += pool.lines[band].tokens
        bands[band] = BandUse(
            requests=len(waiting),
            weighted_tokens=pool.lines[band].tokens,
            need_tokens=sum(ticket.need_tokens for ticket in waiting),
            oldest_wait_ms=max((now_ms - ticket.entered_ms for ticket in waiting), default=0),
            wait_ms=pool.speed.wait_ms(ahead, running),
        )
    return PoolUse(
        bands=bands,
        parked=sum(waits.is_parked for waits in pool.waiting.values()),
        rooms=tuple(sorted(pool.rooms.values(), key=lambda room: room.id)),
        tenants_waiting=dict(Counter(waits.ticket.tenant for waits in pool.waiting.values())),
        shares=shares_of(pool),
    )


async def forget_pool(redis_client: RedisClient, name: str) -> None:
    """The store loses a pool."""
    for key in keys_of(name):
        await redis_client.delete(key)


class Ear(Protocol):
    """Hears what is told to gateways."""

    async def told(self) -> list[Message]:
        """All since the last time, in order."""

    async def aclose(self) -> None:
        """Listen no more."""


class OneServersEar:
    """Subscribed on one server, beside the gateways. What came before a mark has been told."""

    def __init__(self, plain: "redis.asyncio.Redis", pubsub: Any, gateways: dict[str, str]) -> None:
        self._plain = plain
        self._pubsub = pubsub
        self._gateways = gateways

    @classmethod
    async def at(cls, url: str, gateways: Sequence[str]) -> "OneServersEar":
        """Listen at a server."""
        plain = redis.asyncio.Redis.from_url(url)
        pubsub = plain.pubsub(ignore_subscribe_messages=True)
        names = {channel_of(gateway): gateway for gateway in gateways}
        await pubsub.subscribe(*names, "mark")
        return cls(plain, pubsub, names)

    async def told(self) -> list[Message]:
        """All since the last time."""
        mark, heard = uuid4().hex.encode(), list[Message]()
        await self._plain.publish("mark", mark)
        async with asyncio.timeout(5):
            while True:
                reply = await self._pubsub.get_message(timeout=1)
                if reply is None:
                    continue
                if reply["data"] == mark:
                    return heard
                if reply["channel"] != b"mark":
                    gateway = self._gateways[reply["channel"].decode()]
                    heard.append(message(gateway, reply["data"]))

    async def aclose(self) -> None:
        """Listen no more."""
        await self._pubsub.aclose()
        await self._plain.aclose()


class ManyServersEar:
    """At each primary of a cluster. Whichever published it, each hears all of it, a little later:
    so a server's own messages are told at once, and what the others hear is waited for."""

    def __init__(self, ears: list[OneServersEar]) -> None:
        self._ears = ears

    @classmethod
    async def at(cls, ports: list[int], password: str, gateways: Sequence[str]) -> "ManyServersEar":
        """Listen at all of them."""
        urls = [f"redis://:{password}@127.0.0.1:{port}" for port in ports]
        return cls([await OneServersEar.at(url, gateways) for url in urls])

    async def told(self) -> list[Message]:
        """What the one that published has told, once the others have heard as much."""
        heard = [await ear.told() for ear in self._ears]
        longest = max(heard, key=len)
        async with asyncio.timeout(5):
            for at, ear in enumerate(self._ears):
                while len(heard[at]) < len(longest):
                    heard[at] += await ear.told()
        assert all(messages == longest for messages in heard)
        return longest

    async def aclose(self) -> None:
        """Listen no more."""
        for ear in self._ears:
            await ear.aclose()
