"""Listening for grants: what is lost with a connection is told again, and the next one is made."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import redis.asyncio
from old_redis import old_redis
from pausable_proxy import PausableProxy, pausable_proxy

from gateway.adapters import pool_queue_messages
from gateway.adapters.pool_queue import RedisPoolQueue
from gateway.adapters.pool_queue_messages import channel_of
from gateway.adapters.redis import connect_redis
from gateway.domain.queue.capacity import WorkerRoom
from gateway.domain.queue.tickets import Band, Granted, Message, Queued
from gateway.serving.queue_ports import Wish

POOL = "model-8b"
WELL_MS = 3_600_000
IN_TIME_S = 20.0


class Listening:
    """A gateway that listens all the while by way of a proxy, and asks past it."""

    def __init__(self, url: str, proxy: PausableProxy) -> None:
        self.proxy = proxy
        self.client = connect_redis(url, timeout_ms=2_000)
        self.queue = RedisPoolQueue(
            self.client, url=proxy.url, gateway="gw {1}*", ttl_ms=60_000, timeout_ms=2_000
        )
        self.heard: asyncio.Queue[Message] = asyncio.Queue()
        self.task = asyncio.create_task(self._listen())

    async def _listen(self) -> None:
        async for message in self.queue.messages():
            self.heard.put_nowait(message)

    async def subscribed(self) -> None:
        """Once it is listened."""
        async with asyncio.timeout(IN_TIME_S):
            await self.queue.listening()

    async def next(self) -> Message:
        """What is heard next."""
        async with asyncio.timeout(IN_TIME_S):
            return await self.heard.get()

    async def queue_up(self, *ids: str) -> None:
        """One runs, the others wait, in this order."""
        await self.queue.report(POOL, [WorkerRoom("w", 1, 1, 10**6, 0)], well_ms=WELL_MS)
        for at, ticket_id in enumerate(ids):
            answer = await self.queue.enter(POOL, a_wish(ticket_id, at), max_queued=9)
            assert isinstance(answer, Queued if at else Granted)

    async def pass_on(self, ticket_id: str) -> None:
        """It ends, and the next is granted."""
        await self.queue.leave(POOL, ticket_id, actual_cost=50)


def a_wish(ticket_id: str, at: int) -> Wish:
    return Wish(ticket_id, "t", Band.INTERACTIVE, 1, 100, 50, 1, 60_000 + at, 90_000)


def grant(ticket_id: str) -> Message:
    return Message("gw {1}*", ticket_id, "w", is_grant=True)


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[Listening]:
    """On a server of this test's own."""
    with old_redis(tmp_path) as server:
        async with pausable_proxy(server.url) as proxy:
            made = Listening(server.url, proxy)
            try:
                yield made
            finally:
                made.task.cancel()
                await asyncio.gather(made.task, return_exceptions=True)
                await made.queue.aclose()
                await made.client.aclose()


async def test_a_connection_lost_between_a_grant_and_its_message(gateway: Listening) -> None:
    """Renew tells the grant, and the next message comes over the next connection."""
    await gateway.subscribed()
    await gateway.queue_up("a", "b", "c")
    await gateway.proxy.refuse()
    await gateway.pass_on("a")
    assert await gateway.queue.renew(POOL, ["b"]) == [Granted("w")]
    assert await gateway.queue.take_up(POOL, "b") == Granted("w")
    await gateway.proxy.heal()
    await gateway.subscribed()
    await gateway.pass_on("b")
    assert await gateway.next() == grant("c")
    assert not gateway.task.done()


async def test_a_silent_connection_is_given_up(
    gateway: Listening, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No end of it is seen, only that no sign comes: another is made."""
    await gateway.subscribed()
    monkeypatch.setattr(pool_queue_messages, "QUIET_S", 0.05)
    gateway.proxy.hang()
    async with asyncio.timeout(IN_TIME_S):
        while gateway.queue.is_listening:  # noqa: ASYNC110 - nobody signals its end
            await asyncio.sleep(0.01)
    monkeypatch.undo()
    await gateway.proxy.cut()
    await gateway.proxy.heal()
    await gateway.subscribed()
    await gateway.queue_up("a", "b")
    await gateway.pass_on("a")
    assert await gateway.next() == grant("b")


async def test_a_quiet_connection_is_kept(
    gateway: Listening, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that has nothing to tell gives its signs, for many times the silence allowed."""
    monkeypatch.setattr(pool_queue_messages, "QUIET_S", 0.1)
    await gateway.subscribed()
    async with redis.asyncio.Redis(port=gateway.proxy.target[1]) as plain:
        before = await plain.client_list(_type="pubsub")
        await asyncio.sleep(1.0)
        after = await plain.client_list(_type="pubsub")
    assert [each["id"] for each in after] == [each["id"] for each in before]


async def test_what_is_none_of_ours_is_passed_over(gateway: Listening) -> None:
    """Anybody who may publish may write anything there."""
    await gateway.subscribed()
    channel = channel_of("gw {1}*")
    async with redis.asyncio.Redis(port=gateway.proxy.target[1]) as plain:
        for payload in (b"", b"\xc1", b"\x93\x01\x02\x03", b"\x90", b"\xff" * 100):
            assert await plain.publish(channel, payload) == 1
    await gateway.queue_up("a", "b")
    await gateway.pass_on("a")
    assert await gateway.next() == grant("b")


async def test_nobody_is_told_what_another_gateway_is(gateway: Listening) -> None:
    """A name like a pattern is no pattern."""
    await gateway.subscribed()
    async with redis.asyncio.Redis(port=gateway.proxy.target[1]) as plain:
        assert await plain.publish(channel_of("gw {1}x"), b"") == 0
