"""Gateways tell which changes they go by, and whoever made one asks them (B07)."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest
from pausable_proxy import pausable_proxy
from postgres_proxy import PostgresProxy, postgres_proxy
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.adapters.confirmations import Confirmations, Confirming
from gateway.adapters.directory import WAKE_S, CachedDirectory
from gateway.adapters.postgres import async_engine
from gateway.adapters.presence import APPLIED_KEY, Gateways
from gateway.adapters.redis import RedisClient, connect_redis
from gateway.administration import Administration
from gateway.domain.confirmation import Applied, Unknown
from gateway.domain.tenant import Model

ME = "cli:test"


class Born:
    """The store began at `ms`; 0: it never lost anything."""

    def __init__(self, ms: int = 0) -> None:
        self.ms = ms

    async def born_ms(self, tenant_id: str) -> int:
        assert f"{{{tenant_id}}}" in APPLIED_KEY
        return self.ms


@pytest.fixture
async def store(redis_url: str) -> AsyncIterator[RedisClient]:
    """A client of an empty store."""
    client = connect_redis(redis_url, timeout_ms=2_000)
    yield client
    await client.aclose()


@pytest.fixture
async def engine(database_url: str) -> AsyncIterator[AsyncEngine]:
    """An engine on this test's database."""
    made = async_engine(database_url, pool_size=12)
    yield made
    await made.dispose()


@pytest.fixture
async def proxy(database_url: str) -> AsyncIterator[PostgresProxy]:
    """A proxy in front of this test's database."""
    async with postgres_proxy(database_url) as started:
        yield started


@pytest.fixture
def gateways(store: RedisClient) -> Gateways:
    """The list in a store that never lost anything."""
    return Gateways(store, Born())


async def test_who_is_there_and_who_has_said_so(store: RedisClient, gateways: Gateways) -> None:
    """It returns at once where all have; else it waits, and names those that have not."""
    confirmations = Confirmations(store, gateways)
    for name in ("gw-a", "gw-b"):
        await gateways.tell(name, 0)
    await confirmations.tell("gw-a", Applied(7))
    await confirmations.tell("gone", Applied(9))
    began = time.monotonic()
    found = await confirmations.wait(7, patience_s=0.3)
    assert time.monotonic() - began >= 0.3
    assert (found.confirmed, found.unconfirmed) == (("gw-a",), ("gw-b",))
    waiting = asyncio.create_task(confirmations.wait(7, patience_s=10))
    await confirmations.tell("gw-b", Applied(5, frozenset({7})))
    assert (await waiting).confirmed == ("gw-a", "gw-b")


@pytest.mark.parametrize(
    ("said", "confirms"),
    [(b"9", False), (b"x|", False), (b"9|y", False), (b"", False), (b"\xff|", False),
     (b"9|", True), (b"5|7|of-a-later-release", True)],
)  # fmt: skip
async def test_what_cannot_be_read_confirms_nothing(
    store: RedisClient, gateways: Gateways, said: bytes, confirms: bool
) -> None:
    """And raises nothing; what a later release adds is passed over."""
    await gateways.tell("gw-a", 0)
    tell = store.register_script("return redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])")
    await tell([APPLIED_KEY], [b"\xff", b"9|"])
    await tell([APPLIED_KEY], ["gw-a", said])
    found = await Confirmations(store, gateways).wait(7, patience_s=0.2)
    assert (found.confirmed, found.unconfirmed) == (
        (("gw-a",), ()) if confirms else ((), ("gw-a",))
    )


async def test_it_is_not_waited_for_longer_than_said(
    store: RedisClient, gateways: Gateways, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not for the look that is under way either; a list that cannot be read raises nothing."""

    async def never() -> None:
        await asyncio.Event().wait()

    async def unreadable() -> None:
        raise ValueError

    monkeypatch.setattr(gateways, "present", never)
    async with asyncio.timeout(2):
        found = await Confirmations(store, gateways).wait(1, patience_s=0.1)
    assert found.unknown is Unknown.STORE_UNAVAILABLE
    monkeypatch.setattr(gateways, "present", unreadable)
    found = await Confirmations(store, gateways).wait(1)
    assert found.unknown is Unknown.STORE_UNAVAILABLE


async def test_one_that_left_is_not_asked(store: RedisClient, gateways: Gateways) -> None:
    """And what it said is gone too."""
    confirmations = Confirmations(store, gateways)
    for name in ("gw-a", "gw-b"):
        await gateways.tell(name, 0)
        await confirmations.tell(name, Applied(1))
    await gateways.forget("gw-b")
    assert (await confirmations.wait(1)).confirmed == ("gw-a",)
    fields = await store.register_script("return redis.call('HKEYS', KEYS[1])")([APPLIED_KEY], [])
    assert fields == [b"gw-a"]


async def test_where_it_is_not_known_who_is_there_nobody_is_claimed(
    store: RedisClient, gateways: Gateways
) -> None:
    """Without a list, and with one that began just now in a store that lost what it had."""
    confirmations = Confirmations(store, gateways)
    await confirmations.tell("gw-a", Applied(9))
    assert (await confirmations.wait(1)).unknown is Unknown.GATEWAYS_UNHEARD
    await gateways.tell("gw-a", 0)
    reborn = Gateways(store, Born(1))
    found = await Confirmations(store, reborn).wait(1)
    assert (found.confirmed, found.unconfirmed) == ((), None)
    assert (await confirmations.wait(1)).is_complete


async def test_a_store_that_does_not_answer_says_nothing(redis_url: str) -> None:
    """Soon, and without raising."""
    async with pausable_proxy(redis_url) as proxy:
        client = connect_redis(proxy.url, timeout_ms=2_000)
        confirmations = Confirmations(client, Gateways(client, Born()))
        proxy.hang()
        began = time.monotonic()
        found = await confirmations.wait(1)
        assert time.monotonic() - began < 2
        assert found.unknown is Unknown.STORE_UNAVAILABLE
        await client.aclose()


@asynccontextmanager
async def following(
    engine: AsyncEngine, store: RedisClient, gateways: Gateways, name: str
) -> AsyncIterator[CachedDirectory]:
    """A gateway's directory that tells how far it is."""
    directory = CachedDirectory(engine, redis=store)
    await directory.start()
    await gateways.tell(name, 0)
    confirming = Confirming(
        Confirmations(store, gateways), name, lambda: directory.applied, directory.moved
    )
    task = asyncio.create_task(confirming.run())
    try:
        yield directory
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        await directory.stop()


async def test_a_gateway_that_has_it_from_redis_alone_confirms(
    engine: AsyncEngine, store: RedisClient, gateways: Gateways, proxy: PostgresProxy
) -> None:
    """One follows both stores, one Postgres no more: both confirm a revocation and a suspension,
    and of limits only the first can."""
    administration = Administration(engine, redis=store)
    await administration.register_model(
        ME, Model(id="m", context_tokens=2048, max_output_tokens=512)
    )
    await administration.create_tenant(ME, "acme", "Acme")
    key, _ = await administration.create_key(ME, "acme", "k", "batch")
    behind = async_engine(proxy.url)
    async with (
        following(engine, store, gateways, "gw-a"),
        following(behind, store, gateways, "gw-b"),
    ):
        assert (await administration.confirm_key(key.id)).confirmed == ("gw-a", "gw-b")
        await proxy.refuse()
        await administration.revoke_key(ME, key.id)
        assert (await administration.confirm_key(key.id)).confirmed == ("gw-a", "gw-b")
        await administration.put_tenant_limits(ME, "acme", {"tpm": 7})
        found = await administration.confirm_tenant("acme")
        assert (found.confirmed, found.unconfirmed) == (("gw-a",), ("gw-b",))
        await administration.update_tenant(ME, "acme", suspended=True)
        assert (await administration.confirm_tenant("acme")).is_complete
        await proxy.start()
    await behind.dispose()


async def test_what_the_store_lost_is_told_again(
    engine: AsyncEngine, store: RedisClient, gateways: Gateways
) -> None:
    """Within a second or so, also where nothing changes."""
    async with following(engine, store, gateways, "gw-a"):
        await store.delete(APPLIED_KEY)
        confirmations = Confirmations(store, gateways)
        assert (await confirmations.wait(0, patience_s=3)).confirmed == ("gw-a",)


async def test_a_change_that_cannot_be_read_is_not_known(
    engine: AsyncEngine, store: RedisClient
) -> None:
    """A key that is not there; and without a store nobody can be asked."""
    known = await Administration(engine, redis=store).confirm_key("key_unknown")
    assert known.unknown is Unknown.CHANGE_UNREAD
    assert (await Administration(engine).confirm_key("key_x")).unknown is Unknown.NO_STORE


async def test_a_directory_that_stood_still_believes_nothing_until_it_has_looked(
    engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B07: `revocations_age_ms` has no end until a look that began after that succeeds."""
    directory = CachedDirectory(engine)
    await directory.start()
    assert directory.revocations_age_ms < 10_000
    monkeypatch.setattr(directory._standstill, "_woke_at", time.monotonic())
    assert directory.revocations_age_ms == 2**53
    await directory.waken()  # the next look is a fraction of a second away
    assert directory.revocations_age_ms < 10_000
    await directory.stop()


async def test_a_standstill_with_no_store_to_ask_is_waited_out_for_a_second(
    engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody looks, so nothing is believed; who asked was kept for `WAKE_S` and no longer."""
    directory = CachedDirectory(engine)
    await directory.refresh()
    await directory.waken()
    assert directory.revocations_age_ms < 10_000
    monkeypatch.setattr(directory._standstill, "_woke_at", time.monotonic())
    began = time.monotonic()
    await directory.waken()
    assert WAKE_S * 0.9 <= time.monotonic() - began < WAKE_S * 3
    assert directory.revocations_age_ms == 2**53
