"""What gateways learn of workers, on a real server: who decides, and what is kept for how long."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import redis.asyncio

from gateway.adapters.pool_ceilings import AT_ONCE, RedisPoolCeilings, record_key
from gateway.adapters.redis import RedisClient, connect_redis
from gateway.domain.queue.capacity import FORGOTTEN_MS
from gateway.domain.queue.ceilings import EngineFacts
from gateway.domain.queue.learned import Record
from gateway.domain.queue.learning import LatencyRule
from gateway.domain.queue.samples import Samples
from gateway.serving.ports import LedgerUnavailable

POOL = "org/model-8b"
RULE = LatencyRule()
FACTS = EngineFacts(kv_tokens=640_000)
BEGUN = Record(RULE.begin(FACTS, now_ms=0), Samples(1))
SEEN = Samples(1, counted=40, over=30, looks=1, batch_ran=1, interactive_ms=60_000)
"""Of one gateway; two of them are enough to decide on."""


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
def store(client: RedisClient) -> RedisPoolCeilings:
    """As a gateway reaches it."""
    return RedisPoolCeilings(client, timeout_ms=2_000)


async def test_a_worker_that_nobody_knows_begins_with_what_is_brought(
    store: RedisPoolCeilings,
) -> None:
    met = await store.meet(POOL, {"w": Record(BEGUN.learned, SEEN)})
    assert met.records == {"w": Record(BEGUN.learned, SEEN)}
    assert met.taken == {"w"}
    later = await store.meet(POOL, {"w": replace(BEGUN, learned=replace(BEGUN.learned, batch=7))})
    assert later.records == met.records
    assert not later.taken


async def test_the_time_is_the_servers(
    store: RedisPoolCeilings, plain: "redis.asyncio.Redis"
) -> None:
    before = await plain.time()
    met = await store.meet(POOL, {"w": BEGUN})
    after = await plain.time()
    assert before[0] * 1000 <= met.now_ms <= after[0] * 1000 + after[1] // 1000


async def test_samples_of_all_gateways_add_up_and_one_decision_counts(
    store: RedisPoolCeilings, redis_url: str
) -> None:
    """Two gateways that find the same record ripe, at the same instant."""
    second = connect_redis(redis_url, timeout_ms=2_000)
    gateways = store, RedisPoolCeilings(second, timeout_ms=2_000)
    brought = {"w": Record(BEGUN.learned, SEEN)}
    await asyncio.gather(*(each.meet(POOL, brought) for each in gateways))
    found = [await each.meet(POOL, {"w": BEGUN}) for each in gateways]
    assert [each.records["w"].samples.counted for each in found] == [80, 80]
    decided = []
    for each in found:
        record = each.records["w"]
        after = RULE.decide(record.learned, record.samples, FACTS, now_ms=60_000)
        assert after is not None
        decided.append({"w": Record(after, Samples(after.epoch))})
    met = await asyncio.gather(
        *(each.meet(POOL, it) for each, it in zip(gateways, decided, strict=True))
    )
    assert sorted(len(each.taken) for each in met) == [0, 1]
    assert met[0].records == met[1].records
    learned, samples = met[0].records["w"].learned, met[0].records["w"].samples
    assert (learned.epoch, learned.batch) == (2, 54)
    assert samples == Samples(2, interactive_ms=60_000)
    await second.aclose()


async def test_what_was_seen_before_a_decision_is_dropped(store: RedisPoolCeilings) -> None:
    await store.meet(POOL, {"w": BEGUN})
    decided = replace(BEGUN.learned, epoch=2, batch=50)
    await store.meet(POOL, {"w": Record(decided, Samples(2))})
    late = replace(SEEN, interactive_ms=61_000)
    met = await store.meet(POOL, {"w": Record(BEGUN.learned, late)})
    assert met.records["w"] == Record(decided, Samples(2, interactive_ms=61_000))


async def test_a_store_that_was_emptied_goes_on_from_what_gateways_know(
    store: RedisPoolCeilings, plain: "redis.asyncio.Redis"
) -> None:
    """Also where one that knows nothing comes first."""
    known = Record(replace(BEGUN.learned, epoch=31, batch=77), Samples(31))
    await store.meet(POOL, {"w": known})
    await plain.flushall()
    assert (await store.meet(POOL, {"w": BEGUN})).records["w"].learned == BEGUN.learned
    met = await store.meet(POOL, {"w": known})
    assert met.records["w"] == known
    assert met.taken == {"w"}


async def test_a_record_that_nobody_touches_goes(
    client: RedisClient, store: RedisPoolCeilings, plain: "redis.asyncio.Redis"
) -> None:
    await store.meet(POOL, {"w": BEGUN})
    left_ms = await plain.pttl(record_key(POOL, "w"))
    assert FORGOTTEN_MS - 5_000 < left_ms <= FORGOTTEN_MS
    soon = RedisPoolCeilings(client, timeout_ms=2_000, forgotten_ms=1)
    await soon.meet(POOL, {"w": BEGUN})
    async with asyncio.timeout(5):
        while await plain.exists(record_key(POOL, "w")):
            pass
    assert await plain.keys() == []


async def test_a_record_of_another_length_is_of_another_release(
    store: RedisPoolCeilings, plain: "redis.asyncio.Redis"
) -> None:
    await plain.set(record_key(POOL, "w"), b"\0" * 64)
    assert (await store.meet(POOL, {"w": BEGUN})).records["w"] == BEGUN


async def test_records_lie_with_their_pools_queue(store: RedisPoolCeilings) -> None:
    assert record_key("org/{m}", "http://[::1]:80/{b}").startswith("weir:{pool:org/%7Bm%7D}:")


async def test_many_workers_are_several_calls(store: RedisPoolCeilings) -> None:
    brought = {f"w{number}": BEGUN for number in range(2 * AT_ONCE + 1)}
    met = await store.meet(POOL, brought)
    assert met.taken == met.records.keys() == brought.keys()


async def test_a_store_that_does_not_answer_is_said() -> None:
    client = connect_redis("redis://127.0.0.1:1/0", timeout_ms=200)
    with pytest.raises(LedgerUnavailable):
        await RedisPoolCeilings(client, timeout_ms=200).meet(POOL, {"w": BEGUN})
    await client.aclose()
