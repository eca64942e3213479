"""The queue of a pool on a cluster, and behind a Sentinel whose primary is killed."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from queue_parity import parity_with, run_parity
from queue_specified import ManyServersEar
from redis_cluster import PASSWORD, Cluster, Watched, until

from gateway.adapters.pool_queue import RedisPoolQueue
from gateway.adapters.redis import RedisClient, connect_redis
from gateway.domain.queue.capacity import WorkerRoom
from gateway.domain.queue.tickets import Band, Granted, Message, Queued
from gateway.serving.ports import LedgerUnavailable
from gateway.serving.queue_ports import Run, Wish

TIMEOUT_MS = 1_000
WELL_MS = 3_600_000
IN_TIME_S = 30.0
GATEWAY = "gw-1"


def a_wish(ticket_id: str) -> Wish:
    return Wish(ticket_id, "t", Band.INTERACTIVE, 1, 100, 50, 1, 60_000, 90_000)


def a_room() -> WorkerRoom:
    return WorkerRoom("w", 1, 1, 10**6, 0)


def a_queue(client: RedisClient, url: str) -> RedisPoolQueue:
    return RedisPoolQueue(client, url=url, gateway=GATEWAY, ttl_ms=60_000, timeout_ms=TIMEOUT_MS)


@pytest.mark.timeout(300)
def test_lua_executes_the_specification_of_the_queue(cluster: Cluster) -> None:
    """No two keys of a script lie in different slots, and every message reaches every node."""

    async def flush_scripts() -> None:
        for server in cluster.primaries:
            server.ask("SCRIPT", "FLUSH")

    ports = [server.port for server in cluster.primaries]
    with parity_with(
        cluster.url,
        lambda: connect_redis(cluster.url, timeout_ms=5_000),
        lambda gateways: ManyServersEar.at(ports, PASSWORD, gateways),
        flush_scripts,
    ) as machine:
        run_parity(machine, examples=25)


async def test_messages_of_all_pools_reach_one_listener(
    cluster: Cluster, client: RedisClient
) -> None:
    """Of pools on each of the primaries, wherever the gateway listens."""
    queue = a_queue(client, cluster.url)
    pools = [f"model-{n}" for n in range(12)]
    assert len({cluster.owner(f"pool:{pool}").port for pool in pools}) == len(cluster.primaries)
    heard: set[str] = set()

    async def listen() -> None:
        async for message in queue.messages():
            heard.add(message.ticket_id)
            if len(heard) == len(pools):
                break

    listener = asyncio.create_task(listen())
    async with asyncio.timeout(IN_TIME_S):
        await queue.listening()
        for pool in pools:
            await queue.report(pool, [a_room()], well_ms=WELL_MS)
            assert await queue.enter(pool, a_wish(f"{pool}-a"), max_queued=1) == Granted("w")
            assert isinstance(await queue.enter(pool, a_wish(f"{pool}-b"), max_queued=1), Queued)
            await queue.leave(pool, f"{pool}-a", actual_cost=50)
        await listener
    assert heard == {f"{pool}-b" for pool in pools}


@pytest.fixture
async def behind_sentinel(watched: Watched) -> AsyncIterator[RedisClient]:
    """A client that asks the Sentinel."""
    made = connect_redis(watched.url, timeout_ms=TIMEOUT_MS)
    yield made
    await made.aclose()


async def test_after_a_failover_grants_are_heard_again(
    watched: Watched, behind_sentinel: RedisClient
) -> None:
    """The primary is killed: what runs is resumed at its replica, and the listener follows."""
    queue = a_queue(behind_sentinel, watched.url)
    heard: asyncio.Queue[Message] = asyncio.Queue()

    async def listen() -> None:
        async for message in queue.messages():
            heard.put_nowait(message)

    listener = asyncio.create_task(listen())
    async with asyncio.timeout(IN_TIME_S):
        await queue.listening()
    await queue.report("m", [a_room()], well_ms=WELL_MS)
    assert await queue.enter("m", a_wish("a"), max_queued=1) == Granted("w")
    killed = watched.primary()
    killed.kill()
    await asyncio.to_thread(
        until, lambda: watched.primary() is not killed, "the Sentinel names the replica"
    )
    async with asyncio.timeout(IN_TIME_S):
        while True:
            try:
                await queue.resume("m", [Run(a_wish("a"), "w", began=True)])
                await queue.report("m", [a_room()], well_ms=WELL_MS)
                break
            except LedgerUnavailable:
                await asyncio.sleep(0.05)
        await queue.listening()
        assert isinstance(await queue.enter("m", a_wish("b"), max_queued=1), Queued)
        await queue.leave("m", "a", actual_cost=50)
        assert await heard.get() == Message(GATEWAY, "b", "w", is_grant=True)
    listener.cancel()
    await asyncio.gather(listener, return_exceptions=True)
