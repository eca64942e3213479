"""A server that comes back with less than it had acknowledged is seen by whoever saw its pulse, and
what tenants had in it is not believed."""

import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import redis
from old_redis import OldRedis, old_redis
from redis.exceptions import NoPermissionError

from gateway.adapters.births import Births
from gateway.adapters.ledger import RedisLedger
from gateway.adapters.pulse import Pulse
from gateway.adapters.redis import RedisClient, connect_redis
from gateway.domain.admission import Demand, Granted, Paused, Refused
from gateway.domain.scopes import ScopeLimits
from gateway.serving.ports import LedgerUnavailable

TTL_MS = 10_000
WINDOW_MS = 61_000
NAMES = ("tenant", "key:k", "model:m", "key:k/model:m")
MONTH = "2027-01"
BACK_WITHIN_S = 10.0


class Holder:
    """What a gateway has of the store."""

    def __init__(self, redis: RedisClient) -> None:
        self.redis = redis
        self.births = Births(redis, _served)
        self.ledger = RedisLedger(redis, ttl_ms=TTL_MS, timeout_ms=1_000, births=self.births)
        self.asked = 0

    async def ask(self, tenant: str = "acme", tokens: int = 90) -> object:
        """For so many of 100 tokens a minute, until the store decides."""
        self.asked += 1
        demand = Demand(f"{id(self)}-{self.asked}", 1, tokens, tokens, 10**12, MONTH)
        scopes = [ScopeLimits(name, 1, None, 100, None) for name in NAMES]
        deadline = time.monotonic() + BACK_WITHIN_S
        while True:
            try:
                return await self.ledger.acquire(tenant, "k", "m", demand, scopes)
            except LedgerUnavailable:
                assert time.monotonic() < deadline

    async def back(self) -> None:
        """Until the store answers it."""
        deadline = time.monotonic() + BACK_WITHIN_S
        while True:
            try:
                return await self.ledger.ping()
            except LedgerUnavailable:
                assert time.monotonic() < deadline


async def _served() -> bool:
    return True


async def _never() -> bool:
    return False


@pytest.fixture
def store(tmp_path: Path) -> Iterator[OldRedis]:
    with old_redis(tmp_path) as made:
        yield made


@pytest.fixture
async def holders(store: OldRedis) -> AsyncIterator[list[Holder]]:
    """Two that know each other's store well, and a third that has not looked at it yet."""
    made = [Holder(connect_redis(store.url, timeout_ms=1_000, guard=Pulse())) for _ in range(3)]
    await Births(made[0].redis, _never).open()
    for holder in made[:2]:
        await holder.redis.ping()
    yield made
    for holder in made:
        await holder.redis.aclose()


def now_ms(store: OldRedis) -> int:
    seconds, micros = store.plain.time()
    return int(seconds) * 1000 + int(micros) // 1000


async def test_a_store_that_went_back_is_not_believed(
    store: OldRedis, holders: list[Holder]
) -> None:
    """90 of 100 tokens were used after the snapshot: whoever asks next waits as after a loss, at
    either gateway, from one instant; what tenants had back then is gone, other keys are not."""
    one, two, _ = holders
    await one.ledger.begin_month("globex", MONTH)
    await one.ask("globex", 1)
    store.plain.set("another's", "kept")
    assert store.plain.exists("weir:{globex}:money")
    store.snapshot()
    assert isinstance(await one.ask(), Granted)
    assert isinstance(await two.ask(tokens=20), Refused)
    await one.redis.ping()
    before_ms = now_ms(store)
    store.go_back()
    await two.back()  # looks first, and knows of nothing that is lost
    paused = await one.ask()
    assert isinstance(paused, Paused)
    assert before_ms + WINDOW_MS <= paused.until_ms <= now_ms(store) + WINDOW_MS
    again = await two.ask()
    assert isinstance(again, Paused)
    assert again.until_ms == paused.until_ms, "lost once, whoever sees it"
    assert not store.plain.exists("weir:{globex}:money", "weir:{globex}:book")
    assert isinstance(await two.ask("globex", 1), Paused)
    assert store.plain.get("another's") == "kept"
    assert not store.plain.hexists("weir:pulse", "lost"), "all is removed"


async def test_a_store_that_lost_nothing_is_believed(
    store: OldRedis, holders: list[Holder]
) -> None:
    """Its pulse is what it was: no pause, and the tokens are still charged."""
    one, two, _ = holders
    assert isinstance(await one.ask(), Granted)
    await one.redis.ping()
    store.snapshot()
    store.go_back()
    for holder in (one, two):
        refused = await holder.ask(tokens=20)
        assert isinstance(refused, Refused)
        assert refused.used == 90


async def test_one_that_was_cut_off_finds_it_dealt_with(
    store: OldRedis, holders: list[Holder]
) -> None:
    """It remembers more than the store has, of a birth before: what began since is let be."""
    one, two, _ = holders
    pulse = Pulse()
    before = connect_redis(store.url, timeout_ms=1_000, guard=pulse)
    store.snapshot()
    for _ in range(50):
        await before.ping()
    await before.aclose()
    await one.redis.ping()
    store.go_back()
    assert isinstance(await one.ask(), Paused)
    assert isinstance(await two.ask(), Paused)
    mark = store.plain.get("weir:born")
    with redis.Redis(port=store.port) as plain:
        begun = plain.hget("weir:{acme}:book", "@")
        later = Holder(connect_redis(store.url, timeout_ms=1_000, guard=pulse))
        await later.redis.ping()
        assert isinstance(await later.ask(), Paused)
        await later.redis.aclose()
        assert plain.hget("weir:{acme}:book", "@") == begun
    assert store.plain.get("weir:born") == mark


async def test_what_one_did_not_finish_another_does(store: OldRedis, holders: list[Holder]) -> None:
    """A gateway marked the loss and died: the next connection of any other, also of one that has
    just started, removes what is from before, and nothing that was begun since."""
    one, _, fresh = holders
    for number in range(250):
        await one.ask(f"t{number}")
    lost_ms = now_ms(store)
    store.plain.set("weir:born", lost_ms)
    store.plain.delete("weir:{t7}:book", "weir:{t7}:due")
    paused = await one.ask("t7")
    assert isinstance(paused, Paused)
    store.plain.hset("weir:pulse", "lost", str(lost_ms))
    assert isinstance(await fresh.ask("t8"), Paused)
    books = set(store.plain.keys("weir:{*}:book"))
    assert books == {"weir:{t7}:book", "weir:{t8}:book"}
    assert not store.plain.hexists("weir:pulse", "lost")


async def test_a_store_that_goes_back_behind_an_open_connection(
    store: OldRedis, holders: list[Holder]
) -> None:
    """As behind a proxy that keeps it: the next ping says that the store does not decide, and
    nothing does before a new connection was looked at."""
    one, *_ = holders
    assert isinstance(await one.ask(), Granted)
    await one.redis.ping()
    for beat in store.plain.keys("weir:pulse:*"):
        store.plain.set(beat, "0")
    with pytest.raises(LedgerUnavailable):
        await one.ledger.ping()
    assert isinstance(await one.ask(tokens=1), Paused)


async def test_an_empty_store_is_left_to_its_mark_of_birth(
    store: OldRedis, holders: list[Holder]
) -> None:
    """Nothing is in it that could be taken for whole: it decides, for who has no limit at once."""
    one, *_ = holders
    store.plain.flushall()
    await one.redis.ping()
    assert not store.plain.exists("weir:born")
    assert isinstance(await one.ask(), Paused)
    await one.redis.ping()
    assert not store.plain.hexists("weir:pulse", "lost")


async def test_a_server_that_runs_no_scripts_is_connected_to(store: OldRedis) -> None:
    """So that a gateway can say at its start what is wrong with it; it decides nothing."""
    store.plain.execute_command("ACL", "SETUSER", "default", "-@scripting")  # type: ignore[no-untyped-call]
    client = connect_redis(store.url, timeout_ms=1_000, guard=Pulse())
    with pytest.raises(NoPermissionError):
        await client.check_scripts()
    with pytest.raises(NoPermissionError):
        await client.ping()
    await client.aclose()
