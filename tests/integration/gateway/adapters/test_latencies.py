"""What gateways tell each other in a real store: of latencies, and of hosted providers in use."""

from collections.abc import AsyncIterator

import msgspec
import pytest

from gateway.adapters import hosted_use as hosted_use_module
from gateway.adapters.hosted_use import KEY, RedisHostedUses
from gateway.adapters.latencies import KEPT_MS, RedisSlices, packed, slice_key
from gateway.adapters.redis import RedisClient, connect_redis
from gateway.domain.latency import BUCKETS, OfModel, OfWorker, Slice
from gateway.serving.hosted_use import Use
from gateway.serving.ports import LedgerUnavailable

MODEL = OfModel("ttft", "a/model|with:marks", "batch")
WORKER = OfWorker("tpot", "w-0")


@pytest.fixture
async def store(redis_url: str) -> AsyncIterator[RedisClient]:
    """An empty store."""
    client = connect_redis(redis_url, timeout_ms=1_000)
    yield client
    await client.aclose()


async def test_slices_are_added_up(store: RedisClient) -> None:
    """Of all gateways; what one tells again takes the place of what it told."""
    one, two, reader = (RedisSlices(store) for _ in range(3))
    await one.tell(7, {MODEL: {3: 1, 180: 2}, WORKER: {0: 5}})
    await two.tell(7, {MODEL: {3: 4}})
    await two.tell(8, {WORKER: {9: 1}})
    assert await reader.told([7, 8, 9]) == {
        7: {MODEL: {3: 5, 180: 2}, WORKER: {0: 5}},
        8: {WORKER: {9: 1}},
    }
    await two.tell(7, {MODEL: {3: 6}})
    assert (await reader.told([7]))[7][MODEL] == {3: 7, 180: 2}


async def test_what_is_known_is_not_sent_again(
    store: RedisClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only what has changed, a late word on an old slice too."""
    one, reader = RedisSlices(store), RedisSlices(store)
    for number in range(5):
        await one.tell(number, {WORKER: {number: 1}})
    await reader.told(range(5))
    replies: list[object] = []
    told = reader._told

    async def listening(keys: object, args: object) -> object:
        replies.append(await told(keys, args))  # type: ignore[arg-type]  # handed on as they are
        return replies[-1]

    monkeypatch.setattr(reader, "_told", listening)
    whole = await reader.told(range(5))
    assert replies == [[]]
    await one.tell(1, {WORKER: {1: 2}})
    assert await reader.told(range(5)) == {**whole, 1: {WORKER: {1: 2}}}
    assert len(replies[-1]) == 1  # type: ignore[arg-type]


async def test_what_cannot_be_read_is_passed_over(store: RedisClient) -> None:
    """A part of another release, and one of its series: the rest counts."""
    for odd in (b"\xc1", msgspec.msgpack.encode({"by": "name"})):
        await tell_raw(store, odd)
        assert await RedisSlices(store).told([7]) == {7: {}}
    series = (
        [["ttft", "m", "batch", "region"], [1, 1]],
        [["ttft"], [1, 1]],
        [["tpot", "w-0"], [1]],
        [["tpot", "w-0"], {"1": 1}],
        "sum",
        [["tpot", "w-0"], [4, 2]],
    )
    await tell_raw(store, msgspec.msgpack.encode(series))
    await RedisSlices(store).tell(7, {WORKER: {4: 1}})
    assert await RedisSlices(store).told([7]) == {7: {WORKER: {4: 3}}}


async def tell_raw(store: RedisClient, value: bytes) -> None:
    """As a gateway of another release does."""
    await store.register_script(
        "redis.call('HINCRBY', KEYS[1], 'version', 1)"
        " return redis.call('HSET', KEYS[1], 'another', ARGV[1])"
    )([slice_key(7)], [value])


async def test_a_store_that_came_back_empty_is_empty(store: RedisClient) -> None:
    """What the reader knew is gone with it."""
    one, reader = RedisSlices(store), RedisSlices(store)
    await one.tell(1, {WORKER: {1: 2}})
    assert await reader.told([1])
    await store.delete(slice_key(1))
    assert (await reader.told([1])).get(1, {}) == {}


async def test_it_is_bounded(store: RedisClient) -> None:
    """In time, and in room: with every bucket of a series in use."""
    await RedisSlices(store).tell(1, {WORKER: {1: 2}})
    left_ms = await store.register_script("return redis.call('PTTL', KEYS[1])")([slice_key(1)], [])
    assert 0 < left_ms <= KEPT_MS
    full: Slice = {WORKER: dict.fromkeys(range(BUCKETS), 1000)}
    assert len(packed(full)) < 2_000


async def test_hosted_use_is_each_gateways_own(store: RedisClient) -> None:
    """The latest word of each; who uses nothing is in it no more."""
    one, two = RedisHostedUses(store), RedisHostedUses(store)
    await one.tell({"hosted:a": Use(2, 100)}, at_ms=1_000)
    await two.tell({"hosted:a": Use(1, 50), "hosted:b": Use(0, 70)}, at_ms=4_000)
    told = await one.told(900)
    assert sorted(told, key=len) == [
        {"hosted:a": Use(2, 100)},
        {"hosted:a": Use(1, 50), "hosted:b": Use(0, 70)},
    ]
    assert len(await one.told(1_000)) == 1
    await two.tell({}, at_ms=5_000)
    assert await one.told(4_000) == []


async def test_a_gateway_that_is_gone_is_forgotten(store: RedisClient) -> None:
    """A minute after its last word, by whoever looks."""
    one, two = RedisHostedUses(store), RedisHostedUses(store)
    await one.tell({"hosted:a": Use(2, 100)}, at_ms=1_000)
    await two.tell({"hosted:a": Use(2, 100)}, at_ms=70_000)
    count = store.register_script("return redis.call('HLEN', KEYS[1])")
    await two.told(60_999)
    assert await count([KEY], []) == 2
    await two.told(1_000 + hosted_use_module.KEPT_MS)
    assert await count([KEY], []) == 1


async def test_a_store_that_is_away(free_port: int) -> None:
    """It is said so, by each of the four."""
    away = connect_redis(f"redis://127.0.0.1:{free_port}", timeout_ms=100)
    slices, uses = RedisSlices(away), RedisHostedUses(away)
    for call in (
        lambda: slices.tell(1, {}),
        lambda: slices.told([1]),
        lambda: uses.tell({"hosted:a": Use(1, 1)}, 1),
        lambda: uses.told(1),
    ):
        with pytest.raises(LedgerUnavailable):
            await call()
    await away.aclose()
