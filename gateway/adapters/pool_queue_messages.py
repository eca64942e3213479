"""What a gateway is told of its tickets: a subscription, on a connection of its own.

A message is published by the script that makes a grant, to the gateway's own channel. Every node
of a cluster passes on what any of them was told, so one connection hears all pools. Nothing is kept
for whoever does not listen; `renew` tells it again.
"""

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

import msgspec

from gateway.adapters.pool_queue_records import message
from gateway.adapters.redis import ask_sentinels
from gateway.adapters.redis_link import Link, greet, packed
from gateway.adapters.redis_pipeline import CONNECT_S_MIN, Place
from gateway.adapters.redis_url import Address, Kind, parse_redis_url
from gateway.domain.queue.tickets import Message

QUIET_S = 1.0
"""A connection on which nothing was heard for so long is asked for a sign."""
QUIET_MAX = 3
"""It is given up when it does not give one so many times."""
BACK_OFF_FIRST_S, BACK_OFF_MAX_S = 0.01, 0.2

_log = logging.getLogger(__name__)
_PING = packed(("PING",))


def channel_of(gateway: str) -> str:
    """Where a gateway is told."""
    return f"weir:grants:{gateway}"


class _Hearing(Link):
    """A link that hears what nobody asked for. None is its end."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: asyncio.Queue[list[Any] | None] = asyncio.Queue()
        self.lost.add_done_callback(lambda _: self.heard.put_nowait(None))

    def _hand_out(self, reply: object) -> None:
        if self._waiting:
            super()._hand_out(reply)
        elif isinstance(reply, list):
            self.heard.put_nowait(reply)

    def ping(self) -> None:
        """Ask for a sign; it is heard like the rest."""
        if self._transport is not None and not self.lost.done():
            self._transport.write(_PING)


class GrantMessages:
    """Listens for one gateway. `listening` is set while it is subscribed."""

    def __init__(self, url: str, gateway: str, *, timeout_ms: int) -> None:
        self._address = parse_redis_url(url)
        self._gateway = gateway
        self._connect_s = max(CONNECT_S_MIN, timeout_ms / 1000)
        self._find = _finder(self._address, timeout_ms / 1000)
        self.listening = asyncio.Event()

    async def listen(self) -> AsyncGenerator[Message]:
        """Messages, for ever; a lost connection is made again."""
        wait_s = 0.0
        while True:
            try:
                async with asyncio.timeout(self._connect_s):
                    link = await self._subscribe()
            except Exception as error:  # noqa: BLE001 - whatever ends an attempt, the next is made
                if not wait_s:
                    _log.warning("grants cannot be heard: %s", type(error).__name__)
                wait_s = min(max(2 * wait_s, BACK_OFF_FIRST_S), BACK_OFF_MAX_S)
                await asyncio.sleep(wait_s * random.uniform(0.5, 1.0))  # noqa: S311
                continue
            wait_s = 0.0
            self.listening.set()
            try:
                async for reply in _replies(link):
                    if reply[0] == b"message" and (told := self._read(reply[2])) is not None:
                        yield told
            finally:
                self.listening.clear()
                link.close()
            await asyncio.sleep(BACK_OFF_FIRST_S)

    async def _subscribe(self) -> _Hearing:
        loop = asyncio.get_running_loop()
        place, login = await self._find(), self._address.login
        if place.path is not None:
            _, link = await loop.create_unix_connection(_Hearing, place.path)
        else:
            tls = login.tls
            _, link = await loop.create_connection(
                _Hearing,
                place.host,
                place.port,
                ssl=tls,
                server_hostname=place.host if tls else None,
            )
        try:
            await greet(link, login, primary_only=self._address.kind is Kind.SENTINEL)
            await link.ask("SUBSCRIBE", channel_of(self._gateway))
        except BaseException:
            link.close()
            raise
        return link

    def _read(self, payload: bytes) -> Message | None:
        try:
            return message(self._gateway, payload)
        except (msgspec.MsgspecError, ValueError):
            _log.warning("a message of %d bytes is none of a grant", len(payload))
            return None


async def _replies(link: _Hearing) -> AsyncGenerator[list[Any]]:
    """Until the connection ends, or is silent."""
    quiet = 0
    while quiet < QUIET_MAX:
        try:
            async with asyncio.timeout(QUIET_S):
                reply = await link.heard.get()
        except TimeoutError:
            quiet += 1
            link.ping()
            continue
        if reply is None:
            return
        quiet = 0
        yield reply


def _finder(address: Address, timeout_s: float) -> Callable[[], Awaitable[Place]]:
    """Where to listen now. Of a cluster it does not matter: another one at each attempt."""
    if address.kind is Kind.SENTINEL:
        return ask_sentinels(address, timeout_s)

    async def find() -> Place:
        if address.path:
            return Place(path=address.path)
        return Place(*random.choice(address.nodes))  # noqa: S311

    return find
