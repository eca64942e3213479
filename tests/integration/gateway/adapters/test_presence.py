"""How far gateways have shipped, as they tell each other through a real store."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import cast

import pytest
from postgres_proxy import postgres_proxy
from servers import eventually
from shipping import serve
from usage_examples import an_admission

from gateway.adapters.journal import Journal
from gateway.adapters.postgres import async_engine
from gateway.adapters.presence import GATEWAYS_KEY, Gateways, Presence
from gateway.adapters.redis import RedisClient, connect_redis
from gateway.adapters.second_copy import SecondCopy
from gateway.adapters.second_copy_records import Copies, encode_copy
from gateway.adapters.shipper import Mark, Shipper
from gateway.domain.presence import GONE_MS, NOT_HEARD, NOT_SHIPPED, Heartbeat
from gateway.serving.ports import LedgerUnavailable


class ScriptedShipper:
    """Has shipped all that was recorded up to `shipped`."""

    def __init__(self) -> None:
        self.recorded = 0
        self.shipped = 0

    def mark(self) -> Mark:
        return Mark((1, self.recorded), spare=False)

    async def wait_shipped(self, mark: Mark, *, timeout_ms: int) -> bool:
        await asyncio.sleep(0)
        return self.shipped >= mark.place[1]


@pytest.fixture
async def store(redis_url: str) -> AsyncIterator[RedisClient]:
    """A client of an empty store."""
    client = connect_redis(redis_url, timeout_ms=1_000)
    yield client
    await client.aclose()


class Born:
    """The store began at `ms`; 0: it never lost anything."""

    def __init__(self, ms: int = 0) -> None:
        self.ms = ms

    async def born_ms(self, tenant_id: str) -> int:
        assert f"{{{tenant_id}}}" in GATEWAYS_KEY
        return self.ms


@pytest.fixture
def gateways(store: RedisClient) -> Gateways:
    """The list in a store that never lost anything."""
    return Gateways(store, Born())


@asynccontextmanager
async def running(*presences: Presence) -> AsyncIterator[None]:
    """What publishes does so meanwhile."""
    tasks = [asyncio.create_task(each.run()) for each in presences]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


async def reached(gateways: Gateways, instant_ms: int, *, within_s: float = 3) -> None:
    """Return once nobody is waited for."""
    await waits_for(gateways, instant_ms, within_s=within_s)


async def waits_for(gateways: Gateways, instant_ms: int, *names: str, within_s: float = 3) -> None:
    """Return once exactly these are waited for."""
    async with asyncio.timeout(within_s):
        while await gateways.waited_for(instant_ms) != names:  # noqa: ASYNC110 - it is far away
            await asyncio.sleep(0.01)


async def test_what_was_recorded_before_is_waited_for(gateways: Gateways) -> None:
    """A gateway is waited for until it has shipped what it had recorded when it was asked, and not
    for what it records later."""
    shipper = ScriptedShipper()
    presence = Presence(gateways, "gw-a", shipper)
    shipper.recorded = 5
    instant_ms = await gateways.ask()
    await presence.publish()
    shipper.recorded = 9
    assert await gateways.waited_for(instant_ms) == ("gw-a",)
    shipper.shipped = 4
    await presence.publish()
    assert await gateways.waited_for(instant_ms) == ("gw-a",)
    shipper.shipped = 5
    await presence.publish()
    assert await gateways.waited_for(instant_ms) == ()


async def test_what_was_known_before_the_question_is_no_answer(
    store: RedisClient, gateways: Gateways
) -> None:
    """Shipped through an instant before the question says nothing of what was recorded between,
    also within one millisecond, and also where the server's clock went back."""
    shipper = ScriptedShipper()
    presence = Presence(gateways, "gw-a", shipper)
    await presence.publish()
    assert await gateways.waited_for(await gateways.ask()) == ("gw-a",)
    ahead_ms = await gateways.ask() + 3_600_000
    await store.register_script("return redis.call('HSET', KEYS[1], unpack(ARGV))")(
        [GATEWAYS_KEY], ["clock", ahead_ms, "gw-a", f"{ahead_ms}|{ahead_ms}"]
    )
    instant_ms = await gateways.ask()
    assert await gateways.waited_for(instant_ms) == ("gw-a",)
    await presence.publish()
    assert await gateways.waited_for(instant_ms) == ()


async def test_a_gateway_that_ended_before_the_clock_stepped_back_is_soon_forgotten(
    store: RedisClient, gateways: Gateways
) -> None:
    """It counts as seen when the step is noticed, and not until the clock is there again; a living
    one is seen by the server's clock, whatever instants were handed out."""
    now_ms = int(time.time() * 1000)
    ahead_ms = now_ms + 3_600_000
    write = store.register_script("return redis.call('HSET', KEYS[1], unpack(ARGV))")
    await write([GATEWAYS_KEY], ["clock", ahead_ms, "dead", f"{ahead_ms}|0", "began", ahead_ms])
    assert await gateways.waited_for(await gateways.ask()) == ("dead",)
    await gateways.tell("gw-a", 0)
    read = store.register_script("return redis.call('HMGET', KEYS[1], unpack(ARGV))")
    for field in cast("list[bytes]", await read([GATEWAYS_KEY], ["dead", "gw-a", "began"])):
        assert int(field.split(b"|")[0]) - now_ms < GONE_MS


async def test_instants_go_on_from_where_a_gateway_has_shipped(gateways: Gateways) -> None:
    """In a list that was lost, an instant asked for is later than what its writer remembers."""
    through_ms = int(time.time() * 1000) + 3_600_000
    assert await gateways.tell("gw-a", through_ms) == through_ms
    assert await gateways.ask() > through_ms


async def test_every_gateway_is_waited_for_until_it_leaves(gateways: Gateways) -> None:
    """One that has shipped nothing holds up the others, until it says that it has gone."""
    one, other = ScriptedShipper(), ScriptedShipper()
    first = Presence(gateways, "gw-a", one)
    second = Presence(gateways, "gw-b", other)
    other.recorded = 1
    async with running(first, second):
        await waits_for(gateways, 2**53, "gw-a", "gw-b")
        instant_ms = await gateways.ask()
        await waits_for(gateways, instant_ms, "gw-b")
    await second.leave()
    assert await gateways.waited_for(instant_ms) == ()


async def test_a_settlement_that_the_store_has_not_taken_is_waited_for(gateways: Gateways) -> None:
    """What was recorded and is owed to the store when it is asked must be told first; what comes
    to be owed later need not."""
    owed = {"r1"}
    presence = Presence(gateways, "gw-a", ScriptedShipper(), owed=lambda: frozenset(owed))
    instant_ms = await gateways.ask()
    await presence.publish()
    assert await gateways.waited_for(instant_ms) == ("gw-a",)
    owed.add("r2")
    owed.remove("r1")
    await presence.publish()
    assert await gateways.waited_for(instant_ms) == ()


async def test_how_far_a_journal_is_on_its_disk(store: RedisClient, gateways: Gateways) -> None:
    """Told with the presence, seen by everybody, and in no field that an older release reads; gone
    with the gateway and its second copies."""
    told = Heartbeat(boot=3, durable_seq=40, open_count=2, shipped_seq=38)
    presence = Presence(gateways, "gw-a", ScriptedShipper(), heartbeat=lambda: told)
    await presence.publish()
    await Presence(gateways, "old", ScriptedShipper()).publish()
    found = await gateways.standings()
    assert found["gw-a"].journal == told
    assert found["old"].journal is None
    read = store.register_script("return redis.call('HGET', KEYS[1], ARGV[1])")
    value = cast("bytes", await read([GATEWAYS_KEY], ["gw-a"]))
    assert [part.isdigit() for part in value.split(b"|")] == [True, True]
    copies = SecondCopy(store, "gw-a")
    copies.add(an_admission().request_id, encode_copy(an_admission()))
    assert await copies.flush()
    await presence.leave()
    assert (await gateways.standings()).keys() == {"old"}
    assert await Copies(store).names("gw-a") == set()


async def test_what_a_gateway_that_is_gone_had_not_shipped_stays_known(
    store: RedisClient, gateways: Gateways
) -> None:
    """Also when it is off the list, after a day: nobody else says how much was lost with it."""
    told = Heartbeat(boot=1, durable_seq=40, open_count=2, shipped_seq=NOT_SHIPPED)
    await Presence(gateways, "gw-a", ScriptedShipper(), heartbeat=lambda: told).publish()
    write = store.register_script("return redis.call('HSET', KEYS[1], unpack(ARGV))")
    await write([GATEWAYS_KEY], ["gw-a", "1000|0", "began", "1000"])
    assert await gateways.waited_for(2**53) == ()
    (found,) = (await gateways.standings()).values()
    assert found.journal == told
    assert not told.is_shipped


async def test_a_list_that_just_began_answers_nothing(store: RedisClient) -> None:
    """A store that came back empty may not have heard of everybody yet, one that never lost
    anything has."""
    again, first = Gateways(store, Born(1)), Gateways(store, Born())
    for gateways in (again, first):
        assert await gateways.waited_for(0) == (NOT_HEARD,)
    await Presence(again, "gw-a", ScriptedShipper()).publish()
    assert await again.waited_for(0) == (NOT_HEARD,)
    assert await first.waited_for(0) == ()


async def test_a_gateway_that_the_store_does_not_answer(free_port: int) -> None:
    """Publishing goes on being tried; whoever asks is told."""
    away = connect_redis(f"redis://127.0.0.1:{free_port}", timeout_ms=100)
    gateways = Gateways(away, Born())
    presence = Presence(gateways, "gw-a", ScriptedShipper())
    with pytest.raises(LedgerUnavailable):
        await gateways.ask()
    task = asyncio.create_task(presence.run())
    await asyncio.sleep(0.1)
    assert not task.done()
    task.cancel()
    await away.aclose()


async def test_with_a_real_journal_and_postgres(
    gateways: Gateways, database_url: str, tmp_path: Path
) -> None:
    """Records are in Postgres when nobody is waited for, within a second at a busy gateway; with
    Postgres away the gateway is waited for, and no longer once it is back."""
    async with postgres_proxy(database_url) as proxy:
        engine = async_engine(proxy.url)
        journal = await Journal.open(tmp_path)
        shipper = Shipper(engine, journal)
        shipper.start()
        presence = Presence(gateways, journal.gateway_id, shipper)
        async with running(presence):
            await serve(journal, 50)
            began_s = asyncio.get_running_loop().time()
            await reached(gateways, await gateways.ask())
            assert asyncio.get_running_loop().time() - began_s < 3 * 0.5
            assert shipper.shipped_records == 50
            await proxy.refuse()
            await serve(journal, 3)
            instant_ms = await gateways.ask()
            await waits_for(gateways, instant_ms, journal.gateway_id)
            await eventually(lambda: shipper.last_error is not None)
            assert await gateways.waited_for(instant_ms) == (journal.gateway_id,)
            await proxy.start()
            await reached(gateways, instant_ms, within_s=20)
            assert shipper.shipped_records == 53
        await shipper.stop()
        await journal.close()
        await engine.dispose()
