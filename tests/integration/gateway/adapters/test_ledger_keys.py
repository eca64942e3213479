"""What the ledger leaves in a real Redis: every key goes away by itself, none before what it counts
has aged out, and none comes back by half."""

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
import redis.asyncio as plain_redis

from gateway.adapters.ledger import RedisLedger
from gateway.adapters.redis import RedisClient, connect_redis
from gateway.domain.admission import Demand, Granted, Paused, Refused, Settled
from gateway.domain.scopes import ScopeLimits, ScopeUse
from gateway.serving.ports import HeldLease

START_MS = 1_800_000_000_000
TTL_MS = 10_000
NAMES = ("tenant", "key:k", "model:m", "key:k/model:m")
MONTH = "2027-01"
LAPSED = 10**15
LAPSED_KEEP_S, WINDOW_S, REBUILD_S, MONTH_S = 3_600, 61, 600, 31 * 86_400
PERSISTENT = {"weir:active"}
"""Which tenants may hold something; whoever has nothing is taken out by the sweep."""


class Store:
    """A ledger on the session's Valkey, whose clock stands until a test moves it."""

    def __init__(self, client: RedisClient, plain: plain_redis.Redis) -> None:
        self.now_ms = START_MS
        self.born = 0
        self.plain = plain
        self.ledger = RedisLedger(
            client, ttl_ms=TTL_MS, timeout_ms=5_000, births=self, clock_ms=lambda: self.now_ms
        )

    async def born_ms(self, tenant_id: str) -> int:
        return self.born

    async def acquire(
        self, rid: str, tokens: int = 10, *, max_sequences: int | None = None, tpm: int | None = 100
    ) -> object:
        demand = Demand(rid, 1, tokens, tokens, 5 * 10**12, MONTH)
        scopes = [ScopeLimits(name, 1, max_sequences, tpm, None) for name in NAMES]
        return await self.ledger.acquire("acme", "k", "m", demand, scopes)

    async def settle(self, rid: str, tokens: int = 10) -> Settled:
        return await self.ledger.settle(
            self.lease(rid), actual_tokens=tokens, ran=True, actual_cost_pico=10**12
        )

    async def renew(self, *rids: str) -> object:
        return await self.ledger.renew("acme", [self.lease(rid) for rid in rids])

    async def use(self) -> ScopeUse:
        (use,) = await self.ledger.observe("acme", [ScopeLimits("tenant", 1, None, 100, None)])
        return use

    def lease(self, rid: str) -> HeldLease:
        second = self.now_ms // 1000
        return HeldLease(rid, "acme", "k", "m", 1, 10, second, NAMES, 5 * 10**12, MONTH)

    async def ttls(self) -> dict[str, int]:
        """Seconds to live of every key there is; -1 is for ever."""
        return {str(name): await self.plain.ttl(name) for name in await self.plain.keys()}

    async def pass_time(self, seconds: int) -> None:
        """As if so much had gone by, for the clock and for every key."""
        self.now_ms += seconds * 1000
        for name in map(str, await self.plain.keys()):
            end_ms = await self.plain.pexpiretime(name)
            if end_ms >= 0:
                await self.plain.pexpireat(name, end_ms - seconds * 1000)


@pytest.fixture
async def store(redis_url: str) -> AsyncIterator[Store]:
    client = connect_redis(redis_url, timeout_ms=5_000)
    async with plain_redis.Redis.from_url(redis_url, decode_responses=True) as plain:
        yield Store(client, plain)
    await client.aclose()


def life_of(store: Store) -> list[Callable[[], Awaitable[object]]]:
    """Everything that happens to leases and months, in an order in which all of it does."""

    async def wait_lease_time() -> None:
        store.now_ms += TTL_MS

    async def finish() -> None:
        assert await store.ledger.finish_month("acme", MONTH, store.now_ms, {"tenant": 10**12})

    return [
        lambda: store.acquire("a"),
        lambda: store.acquire("a"),
        lambda: store.acquire("too much", 91),
        lambda: store.acquire("never", 101),
        lambda: store.renew("a", "lost"),
        lambda: store.settle("a", 40),
        lambda: store.settle("unknown"),
        wait_lease_time,
        store.use,
        lambda: store.renew("lost"),
        lambda: store.ledger.begin_month("acme", MONTH),
        lambda: store.acquire("b"),
        lambda: store.settle("b"),
        finish,
        lambda: store.ledger.unsettled_or_recent("acme"),
        lambda: store.ledger.mark_active(["acme"], now_ms=store.now_ms),
        lambda: store.ledger.claim_sweep("gateway", for_ms=2_000),
        lambda: store.ledger.active_page(0),
        lambda: store.ledger.reap("acme"),
        lambda: store.ledger.take_out(["acme"], before_ms=0),
        store.ledger.ping,
    ]


async def test_l14_every_key_goes_away_by_itself(store: Store) -> None:
    """L14, L09: after every single operation, whatever was there before, each key has a time to
    live: nobody has to come back to give it one."""
    seen: set[str] = set()
    for number, operation in enumerate(life_of(store)):
        await operation()
        ttls = await store.ttls()
        seen |= ttls.keys()
        endless = {name for name, left_s in ttls.items() if left_s < 0} - PERSISTENT
        assert not endless, f"after operation {number}"
    assert {name.rsplit(":", 1)[1] for name in seen} >= {
        "book", "due", "money", "recent", "active", "sweep",
    }  # fmt: skip


async def test_l13_no_key_goes_before_what_it_counts(store: Store) -> None:
    """L13: whenever a tenant did something last, its keys outlive every lease, every lapsed lease's
    late settlement and every cell; its money outlives the month; what a rebuild must know outlives
    the rebuild."""
    for operation in life_of(store):
        await operation()
        for name, left_s in (await store.ttls()).items():
            if name.endswith((":book", ":due")):
                assert left_s > LAPSED_KEEP_S + TTL_MS / 1000 + WINDOW_S
            elif name.endswith(":money"):
                assert left_s > MONTH_S + LAPSED_KEEP_S
            elif name.endswith(":recent"):
                assert left_s > REBUILD_S


@pytest.mark.parametrize("pause_s", [7, 1_500, 1_900, 3_600])
async def test_l13_use_keeps_a_tenants_keys(store: Store, pause_s: int) -> None:
    """L13, L15: a tenant that comes back in any rhythm finds what it left, all four keys with the
    same end; one that stays away for two hours begins anew, and nothing counted then."""
    for visit in range(6):
        assert isinstance(await store.acquire(f"{visit}"), Granted)
        ends = {await store.plain.pexpiretime(f"weir:{{acme}}:{name}") for name in ("book", "due")}
        assert len(ends) == 1, "one of them would be gone before the others"
        ttls = await store.ttls()
        assert ttls["weir:{acme}:book"] > LAPSED_KEEP_S + TTL_MS / 1000 + WINDOW_S
        await store.settle(f"{visit}")
        await store.pass_time(pause_s)
    await store.pass_time(7_200)
    assert await store.ttls() == dict.fromkeys(PERSISTENT, -1)
    assert (await store.use()).tokens == 0


async def test_l05_use_prolongs_a_key_and_not_what_it_counts(store: Store) -> None:
    """L05, L06, L08: 60 of 100 at once, then one a second without a pause, on the real store: the
    keys are kept, and the 60 are gone after 61 s all the same."""
    await store.acquire("first", 60)
    await store.settle("first", 60)
    for second in range(1, 61):
        store.now_ms += 1_000
        granted = isinstance(await store.acquire(f"{second}", 1), Granted)
        assert granted is (second <= 40)
        await store.settle(f"{second}", 1)
    assert (await store.use()).tokens == 100
    store.now_ms += 1_000
    assert (await store.use()).tokens == 40
    assert isinstance(await store.acquire("again", 60), Granted)


async def test_l15_what_is_gone_is_not_counted_by_half(store: Store) -> None:
    """L15: a book that is gone while its leases and its money are still there, as an evicting store
    leaves them: neither is counted from what is left, and until it is sure nothing is admitted."""
    await store.acquire("a", max_sequences=1)
    await store.ledger.begin_month("acme", MONTH)
    await store.plain.delete("weir:{acme}:book")
    store.born = store.now_ms
    paused = await store.acquire("b", max_sequences=1)
    assert paused == Paused(until_ms=store.now_ms + WINDOW_S * 1000, now_ms=store.now_ms)
    assert (await store.use()).sequences == 0
    assert await store.plain.zrange("weir:{acme}:due", 0, LAPSED, byscore=True) == []
    await store.renew("a")
    store.now_ms += WINDOW_S * 1000 - 1
    await store.renew("a")
    assert isinstance(await store.acquire("b", max_sequences=1), Paused)
    store.now_ms += 1
    assert isinstance(await store.acquire("b", max_sequences=1), Refused), "a is held again"


async def test_l15_a_book_that_went_alone_is_a_loss(store: Store) -> None:
    """L15: the store never lost anything, and yet a tenant's book is gone beside what ends with it:
    evicted, or deleted by hand. It begins with the pause of a loss, from now, and is not reset."""
    assert isinstance(await store.acquire("a", 90), Granted)
    await store.plain.delete("weir:{acme}:book")
    lost_ms = store.now_ms
    assert await store.acquire("b", 90) == Paused(lost_ms + WINDOW_S * 1000, store.now_ms)
    assert await store.acquire("c", max_sequences=1, tpm=None) == Paused(
        lost_ms + TTL_MS, store.now_ms
    )
    store.now_ms += WINDOW_S * 1000
    assert isinstance(await store.acquire("b", 90), Granted)


async def test_l15_a_new_tenant_waits_for_nothing(store: Store) -> None:
    """L15: one that the store has never heard of, and one whose keys have ended all at once."""
    assert isinstance(await store.acquire("a"), Granted)
    await store.ledger.begin_month("acme", MONTH)
    await store.pass_time(7_200)
    left = await store.ttls()
    assert [name.rsplit(":")[-1] for name in left if name not in PERSISTENT] == ["money"]
    assert isinstance(await store.acquire("b"), Granted)
