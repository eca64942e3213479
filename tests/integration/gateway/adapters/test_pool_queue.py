"""The queue of a pool on a real server: what it keeps, what it tells, and what a step does."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import redis.asyncio
from queue_specified import forget_pool

from gateway.adapters.pool_queue import RedisPoolQueue
from gateway.adapters.pool_queue_scripts import SCRIPTS, STORED_MS, keys_of, script_source
from gateway.adapters.redis import RedisClient, connect_redis
from gateway.domain.queue.capacity import FORGOTTEN_MS, WorkerRoom
from gateway.domain.queue.pool_state import GRANTED_AT_ONCE, TAKE_UP_MS
from gateway.domain.queue.tickets import (
    Band,
    Granted,
    Message,
    Parked,
    Queued,
    TakenBack,
    Unknown,
)
from gateway.serving.ports import LedgerUnavailable
from gateway.serving.queue_ports import Run, Wish

POOL = "org/model-8b"
TTL_MS = 5_000
WELL_MS = 3_600_000
NO_CEILING = 2**53 - 1


def wish(ticket_id: str, tenant: str = "t", band: Band = Band.INTERACTIVE, **other: int) -> Wish:
    """A small request that waits for a minute."""
    values: dict[str, Any] = {
        "sequences": 1, "need_tokens": 100, "cost": 50, "weight": 1, "wait_ms": 60_000,
        "promote_after_ms": 30_000,
    }  # fmt: skip
    return Wish(ticket_id, tenant, band, **{**values, **other})


def room(sequences: int, worker: str = "w") -> WorkerRoom:
    """A worker with memory without end."""
    return WorkerRoom(worker, sequences, sequences, NO_CEILING, 0)


@pytest.fixture
async def client(redis_url: str) -> AsyncIterator[RedisClient]:
    """A client of the session's server."""
    made = connect_redis(redis_url, timeout_ms=2_000)
    yield made
    await made.aclose()


@pytest.fixture
async def plain(redis_url: str) -> "AsyncIterator[redis.asyncio.Redis]":
    """To look at what is kept."""
    async with redis.asyncio.Redis.from_url(redis_url) as made:
        yield made


@pytest.fixture
def gateway(client: RedisClient, redis_url: str) -> Callable[..., RedisPoolQueue]:
    """A gateway's adapter, by its id."""

    def make(name: str, clock_ms: Callable[[], int] | None = None) -> RedisPoolQueue:
        return RedisPoolQueue(
            client, url=redis_url, gateway=name, ttl_ms=TTL_MS, timeout_ms=2_000, clock_ms=clock_ms
        )

    return make


async def heard(queue: RedisPoolQueue, count: int) -> "asyncio.Task[list[Message]]":
    """Listens from when this returns, until so many messages have come."""

    async def listen() -> list[Message]:
        found = []
        async for message in queue.messages():
            found.append(message)
            if len(found) == count:
                break
        return found

    task = asyncio.create_task(listen())
    async with asyncio.timeout(5):
        await queue.listening()
    return task


async def test_a_grant_reaches_the_gateway_that_waits(
    gateway: Callable[..., RedisPoolQueue],
) -> None:
    """One leaves at one gateway, and the message reaches the other."""
    first, second = gateway("gw-1"), gateway("gw-2")
    listening = await heard(second, 1)
    await first.report(POOL, [room(1)], well_ms=WELL_MS)
    assert await first.enter(POOL, wish("a"), max_queued=5) == Granted("w")
    assert isinstance(await second.enter(POOL, wish("b"), max_queued=5), Queued)
    await first.leave(POOL, "a", actual_cost=60)
    async with asyncio.timeout(5):
        assert await listening == [Message("gw-2", "b", "w", is_grant=True)]
    assert await second.take_up(POOL, "b") == Granted("w")


async def test_a_lost_message_is_told_again(gateway: Callable[..., RedisPoolQueue]) -> None:
    """Nobody listens, so the grant's message and the asking back are lost: renew tells both."""
    queue = gateway("gw-1")
    await queue.report(POOL, [room(1)], well_ms=WELL_MS)
    await queue.enter(POOL, wish("a"), max_queued=5)
    await queue.enter(POOL, wish("b", band=Band.BATCH), max_queued=5)
    await queue.leave(POOL, "a", actual_cost=60)
    assert await queue.renew(POOL, ["b", "a"]) == [Granted("w"), Unknown()]
    assert await queue.take_up(POOL, "b") == Granted("w")
    assert isinstance(await queue.enter(POOL, wish("c"), max_queued=5), Queued)
    assert await queue.renew(POOL, ["b"]) == [TakenBack()]
    assert isinstance(await queue.give_back(POOL, "b"), Queued)
    assert await queue.renew(POOL, ["c"]) == [Granted("w")]


async def test_a_killed_gateways_tickets_are_gone_within_the_time_to_live(
    gateway: Callable[..., RedisPoolQueue],
) -> None:
    """Its places and its waiting requests: whoever lives is granted. A grant that it
    does not take up passes on a second later."""
    now_ms = 1_800_000_000_000
    killed = gateway("gw-dead", lambda: now_ms)
    lives = gateway("gw-1", lambda: now_ms)
    await killed.report(POOL, [room(2)], well_ms=WELL_MS)
    for name in ("a", "b", "c", "d"):
        await killed.enter(POOL, wish(name, "dead"), max_queued=5)
    await killed.park(POOL, "b", max_queued=5)
    await lives.enter(POOL, wish("z", "alive"), max_queued=5)
    now_ms += TTL_MS - 1
    assert isinstance((await lives.renew(POOL, ["z"]))[0], Queued | Granted)
    now_ms += 1
    await lives.tick(POOL)
    assert await lives.take_up(POOL, "z") == Granted("w")
    now_ms += TAKE_UP_MS
    use = await lives.observe(POOL)
    assert (use.rooms[0].running, use.tenants_waiting, use.parked) == (1, {}, 0)


async def test_more_than_one_step_does_is_done_behind_it(
    gateway: Callable[..., RedisPoolQueue],
) -> None:
    """A worker has room for all: each step grants some, and the rest follow unasked."""
    queue, count = gateway("gw-1"), 3 * GRANTED_AT_ONCE + 5
    wishes = [wish(f"{n}", f"t{n % 7}") for n in range(count)]
    await queue.report(POOL, [room(1)], well_ms=WELL_MS)
    await queue.enter(POOL, wish("runs"), max_queued=0)
    for each in wishes:
        assert isinstance(await queue.enter(POOL, each, max_queued=count), Queued)
    await queue.report(POOL, [room(count + 1)], well_ms=WELL_MS)
    await queue.finished()
    assert (await queue.observe(POOL)).rooms[0].running == count + 1
    await queue.aclose()


async def test_nothing_is_left_at_rest_and_every_key_has_its_time(
    gateway: Callable[..., RedisPoolQueue], plain: "redis.asyncio.Redis"
) -> None:
    """All left: each key has the one member that stands for nobody, and a time to live."""
    queue = gateway("gw-1")
    await queue.report(POOL, [room(2)], well_ms=WELL_MS)
    for n in range(6):
        band = Band(n % 2)
        assert not isinstance(await queue.enter(POOL, wish(f"{n}", "t", band), max_queued=9), int)
    assert await queue.park(POOL, "0", max_queued=5) == Parked()
    for key in keys_of(POOL):
        assert STORED_MS - 60_000 < await plain.pttl(key) <= STORED_MS, key
    for n in range(6):
        await queue.leave(POOL, f"{n}", actual_cost=None)
    sizes = {}
    for key in keys_of(POOL):
        kind = await plain.type(key)
        sizes[key] = await (plain.hlen(key) if kind == b"hash" else plain.zcard(key))
    assert sizes.pop(keys_of(POOL)[0]) == 2
    assert set(sizes.values()) == {1}, sizes


async def test_what_lives_on_after_a_loss_is_resumed(
    gateway: Callable[..., RedisPoolQueue], client: RedisClient
) -> None:
    """The store forgets the pool: who runs is told again, and nobody has more than the worker."""
    queue = gateway("gw-1")
    await queue.report(POOL, [room(2)], well_ms=WELL_MS)
    await queue.enter(POOL, wish("a"), max_queued=5)
    await forget_pool(client, POOL)
    assert await queue.renew(POOL, ["a"]) == [Unknown()]
    await queue.resume(POOL, [Run(wish("a"), "w", began=True)])
    await queue.report(POOL, [room(2)], well_ms=WELL_MS)
    assert await queue.enter(POOL, wish("b"), max_queued=5) == Granted("w")
    assert isinstance(await queue.enter(POOL, wish("c"), max_queued=5), Queued)


async def test_a_worker_that_is_gone_is_forgotten(
    gateway: Callable[..., RedisPoolQueue],
) -> None:
    """The others keep what is known of them."""
    now_ms = 1_800_000_000_000
    queue = gateway("gw-1", lambda: now_ms)
    await queue.report(POOL, [room(2, "a"), room(3, "b"), room(4, "c")], well_ms=3_000)
    now_ms += 3_000 + FORGOTTEN_MS - 1
    await queue.report(POOL, [room(4, "c")], well_ms=3_000)
    assert [each.id for each in (await queue.observe(POOL)).rooms] == ["a", "b", "c"]
    now_ms += 1
    await queue.report(POOL, [room(4, "c")], well_ms=3_000)
    await queue.tick(POOL)
    (left,) = (await queue.observe(POOL)).rooms
    assert (left.id, left.sequences_max, left.well_until_ms) == ("c", 4, now_ms + 3_000)


@pytest.mark.parametrize("name", ["a}b", "{", "%7D", "ö {x}:", "a" * 500])
async def test_a_pools_name_does_not_break_its_keys(
    gateway: Callable[..., RedisPoolQueue], name: str
) -> None:
    """All of its keys in one slot, apart from those of other pools."""
    tags = {key[key.index("{") : key.index("}") + 1] for key in keys_of(name)}
    assert len(tags) == 1
    assert len(set(keys_of(name))) == len(keys_of(name))
    queue = gateway("gw-1")
    await queue.report(name, [room(1)], well_ms=WELL_MS)
    assert await queue.enter(name, wish("a"), max_queued=0) == Granted("w")
    assert not (await queue.observe("a")).rooms


@pytest.mark.parametrize(
    "bad",
    [
        wish("a\0"), wish("a", "t\0"), wish(""), wish("a", ""), wish("a", sequences=0),
        wish("a", sequences=10**6), wish("a", need_tokens=-1), wish("a", weight=0),
    ],
)  # fmt: skip
async def test_what_the_orders_cannot_hold_is_refused(
    gateway: Callable[..., RedisPoolQueue], bad: Wish
) -> None:
    """Before anything is asked of the store."""
    with pytest.raises(ValueError, match=r"name|sequences|weight"):
        await gateway("gw-1").enter(POOL, bad, max_queued=5)


async def test_a_server_that_forbids_messages_still_grants(
    gateway: Callable[..., RedisPoolQueue], redis_url: str, plain: "redis.asyncio.Redis"
) -> None:
    """Without rights on channels the step is whole, and renew tells the grant."""
    await plain.acl_setuser("mute", enabled=True, nopass=True, keys="*", commands=["+@all"])
    try:
        url = redis_url.replace("unix://", "unix://mute:x@").replace("redis://", "redis://mute:x@")
        mute = connect_redis(url, timeout_ms=2_000)
        queue = RedisPoolQueue(mute, url=url, gateway="gw-1", ttl_ms=TTL_MS, timeout_ms=2_000)
        await queue.report(POOL, [room(1)], well_ms=WELL_MS)
        await queue.enter(POOL, wish("a"), max_queued=5)
        await queue.enter(POOL, wish("b"), max_queued=5)
        await queue.leave(POOL, "a", actual_cost=1)
        assert await queue.renew(POOL, ["b"]) == [Granted("w")]
        await mute.aclose()
    finally:
        await plain.acl_deluser("mute")


async def test_a_store_that_is_away_is_said_to_be(redis_url: str) -> None:
    """Every method raises what its port says."""
    url = "redis://127.0.0.1:1"
    away = connect_redis(url, timeout_ms=200)
    queue = RedisPoolQueue(away, url=url, gateway="gw-1", ttl_ms=TTL_MS, timeout_ms=200)
    with pytest.raises(LedgerUnavailable):
        await queue.enter(POOL, wish("a"), max_queued=5)
    with pytest.raises(LedgerUnavailable):
        await queue.renew(POOL, ["a"])
    with pytest.raises(LedgerUnavailable):
        await queue.observe(POOL)
    await away.aclose()


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_script_opens_with_its_contract_and_has_no_constant_left(name: str) -> None:
    """What the loader did not replace would be an unknown global of the server."""
    source = script_source(name)
    assert not any(f" {prefix}_" in source for prefix in ("P", "T", "K", "R", "S"))
    assert "--" not in source.splitlines()[0]
