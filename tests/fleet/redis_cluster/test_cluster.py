"""A real cluster of three: a tenant's scopes are decided together, wherever its slot lies."""

import asyncio
from contextlib import suppress

import pytest
from redis.exceptions import RedisError, ResponseError
from redis_cluster import PASSWORD, Cluster, Server, until
from redis_tenants import ask_until_granted, decide, limits, tenant_of_each_shard

from gateway.adapters.births import Births
from gateway.adapters.ledger import RedisLedger
from gateway.adapters.redis import RedisClient, slot_tags
from gateway.adapters.redis_url import Kind
from gateway.clock import SystemClock
from gateway.domain.decisions import Demand, Granted, Paused, Settled
from gateway.preflight import Status
from gateway.preflight_redis import check_redis
from gateway.serving.ports import LedgerUnavailable
from gateway.serving.store_watch import StoreWatch
from gateway.serving.sweeping import Sweeper

MOVED_CALLS = 300
TTL_MS = 10_000


async def virgin() -> bool:
    return False


async def nothing_to_tell() -> None:
    pass


async def with_a_past() -> bool:
    return True


async def a_ledger(client: RedisClient) -> RedisLedger:
    return RedisLedger(client, ttl_ms=TTL_MS, timeout_ms=1000)


async def test_r13_every_scope_of_a_tenant_lies_in_one_slot(
    cluster: Cluster, client: RedisClient
) -> None:
    """R13: three shards, no CROSSSLOT: all scopes are taken or none, on each shard, and given
    back."""
    ledger = await a_ledger(client)
    tenants = tenant_of_each_shard(cluster)
    for tenant in tenants:
        scopes = limits(max_sequences=2, tpm=25)
        first, lease = await decide(ledger, tenant, scopes)
        second, _ = await decide(ledger, tenant, scopes)
        third, _ = await decide(ledger, tenant, scopes)
        assert [first.granted, second.granted, third.granted] == [True, True, False]
        assert lease is not None
        assert await ledger.settle(lease, actual_tokens=5, ran=True) is Settled.LIVE
        uses = await ledger.observe(tenant, scopes)
        assert [(use.sequences, use.tokens) for use in uses] == [(1, 15)] * 4
    await ledger.mark_active(tenants, now_ms=1)
    assert sorted(await ledger.active_tenants(10)) == sorted(tenants)
    held = [server.ask("KEYS", f"weir:{{{tenants[0]}}}:*") for server in cluster.primaries]
    assert [len(keys) > 0 for keys in held] == [True, False, False]


async def test_no_limit_is_passed_on_any_shard(cluster: Cluster, client: RedisClient) -> None:
    """INV-2: a burst from many callers over all shards is granted to the limit and no further."""
    ledger = await a_ledger(client)
    for tenant in tenant_of_each_shard(cluster):
        outcomes = await asyncio.gather(
            *(decide(ledger, tenant, limits(max_sequences=7)) for _ in range(40))
        )
        assert sum(asked.granted is True for asked, _ in outcomes) == 7
        assert sum(asked.granted is None for asked, _ in outcomes) == 0


async def test_a_shard_that_is_away_ends_no_sweep(cluster: Cluster, client: RedisClient) -> None:
    """Its tenants are passed over; what nobody renews of the others lapses all the same."""
    ledger = RedisLedger(client, ttl_ms=1, timeout_ms=1000)
    tenants = tenant_of_each_shard(cluster)
    for tenant in tenants:
        await decide(ledger, tenant)
    watch = StoreWatch(ledger.ping, timeout_ms=1000, on_return=nothing_to_tell)
    active = cluster.owner("weir:active")
    away = next(server for server in cluster.primaries if server is not active)
    away.kill()
    try:
        await Sweeper(ledger, watch, SystemClock()).sweep(period_ms=1)
    finally:
        away.start()
    swept = [t for t in tenants if cluster.owner(t) is not away]
    assert len(swept) == 2
    lapsed = (10**15, 2 * 10**15 - 1)
    held = [cluster.owner(t).ask("ZCOUNT", f"weir:{{{t}}}:due", *lapsed) for t in swept]
    assert held == [1, 1]


async def test_a_shard_that_forgot_its_scripts_gets_them_again(
    cluster: Cluster, client: RedisClient
) -> None:
    """One server's NOSCRIPT concerns that server alone, also while another one is away."""
    ledger = await a_ledger(client)
    tenants = tenant_of_each_shard(cluster)
    for tenant in tenants:
        await decide(ledger, tenant)
    cluster.primaries[2].kill()
    try:
        cluster.primaries[1].ask("SCRIPT", "FLUSH")
        asked, _ = await decide(ledger, tenants[1])
        assert asked.granted is True
    finally:
        cluster.primaries[2].start()


async def test_calls_follow_a_slot_that_moves(cluster: Cluster, client: RedisClient) -> None:
    """ASK and MOVED: while a tenant's slot goes from one server to another no call is lost or made
    twice, and none is asked to be repeated."""
    tenant = tenant_of_each_shard(cluster)[0]
    source, target = cluster.primaries[:2]
    slot = cluster.slot(tenant)
    count = client.register_script("return redis.call('INCR', KEYS[1])")
    key = f"weir:{{{tenant}}}:count"
    counted = 0
    moving = asyncio.Event()

    async def calling() -> None:
        nonlocal counted
        for n in range(MOVED_CALLS):
            await count([key], [])
            counted += 1
            if n == 50:
                moving.set()

    callers = [asyncio.create_task(calling()) for _ in range(3)]
    await moving.wait()
    await asyncio.to_thread(move_slot, cluster, slot, source, target)
    await asyncio.gather(*callers)
    assert counted == 3 * MOVED_CALLS
    assert await client.get(key) == b"%d" % counted
    assert cluster.owner(tenant) is target
    await asyncio.to_thread(move_slot, cluster, slot, target, source)
    assert await client.get(key) == b"%d" % counted


def move_slot(cluster: Cluster, slot: int, source: Server, target: Server) -> None:
    """What `--cluster reshard` does with one slot."""
    target.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", cluster.ids[source.port])
    source.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", cluster.ids[target.port])
    while keys := source.ask("CLUSTER", "GETKEYSINSLOT", slot, 10):
        with suppress(ResponseError):
            source.ask(
                "MIGRATE", "127.0.0.1", target.port, "", 0, 5000, "AUTH", PASSWORD, "KEYS", *keys
            )  # fmt: skip
    for server in (target, source, *cluster.primaries):
        server.ask("CLUSTER", "SETSLOT", slot, "NODE", cluster.ids[target.port])


async def test_each_slot_has_a_tag() -> None:
    """The tags of the marks of birth lie where they should."""
    assert len(set(slot_tags())) == 16384


async def test_a_new_cluster_never_lost_anything(cluster: Cluster, client: RedisClient) -> None:
    """The first gateways of an installation write all marks, a second that starts meanwhile takes
    nothing for lost, and later ones leave them."""
    await asyncio.gather(Births(client, virgin).open(), begin_later(Births(client, virgin)))
    later = Births(client, with_a_past)
    await later.open()
    for tenant in tenant_of_each_shard(cluster):
        assert await later.born_ms(tenant) == 0
    marks = [key for server in cluster.primaries for key in server.ask("KEYS", "weir:born:*")]
    values = await client.mget([mark.decode() for mark in marks[::7]])
    assert len(marks) == 16384
    assert set(values) == {b"0"}


async def begin_later(births: Births) -> None:
    """Start while another gateway writes its marks."""
    while await births._redis.get(f"weir:born:{{{slot_tags()[0]}}}") is None:  # noqa: ASYNC110
        await asyncio.sleep(0.001)
    await births.open()


async def test_a_shard_that_comes_back_empty_is_dated(
    cluster: Cluster, client: RedisClient
) -> None:
    """Its tenants' birth is the time it came back; the others lost nothing."""
    births = Births(client, virgin)
    await births.open()
    tenants = tenant_of_each_shard(cluster)
    seconds, _ = await client.time()
    cluster.primaries[1].kill()
    with pytest.raises(LedgerUnavailable):
        await births.born_ms(tenants[1])
    assert await births.born_ms(tenants[0]) == 0
    cluster.primaries[1].start()
    until(cluster.is_settled, "the cluster is whole again")
    born_ms = await born(births, tenants[1])
    assert seconds * 1000 <= born_ms <= (seconds + 30) * 1000
    assert await births.born_ms(tenants[1]) == born_ms
    assert [await births.born_ms(tenant) for tenant in (tenants[0], tenants[2])] == [0, 0]
    ledger = RedisLedger(client, ttl_ms=TTL_MS, timeout_ms=1000, births=births)
    demand = Demand("0" * 32, 1, 10, 10)
    answers = [
        await ledger.acquire(tenant, "k", "m", demand, limits(max_sequences=1))
        for tenant in tenants
    ]
    assert [isinstance(answer, Granted) for answer in answers] == [True, False, True]
    assert isinstance(answers[1], Paused)
    assert answers[1].until_ms == born_ms + TTL_MS


async def born(births: Births, tenant: str) -> int:
    """The birth, once the shard is reached again."""
    async with asyncio.timeout(5):
        while True:
            with suppress(LedgerUnavailable):
                return await births.born_ms(tenant)
            await asyncio.sleep(0.01)


async def test_a_shard_that_is_away_is_no_others_concern(
    cluster: Cluster, client: RedisClient
) -> None:
    """Its tenants are not decided, at once; the others are, and the store as a whole answers."""
    ledger = await a_ledger(client)
    tenants = tenant_of_each_shard(cluster)
    for tenant in tenants:
        await decide(ledger, tenant)
    cluster.primaries[0].kill()
    try:
        for _ in range(50):
            lost, _ = await decide(ledger, tenants[0])
            assert lost.granted is None
            assert lost.took_s < 0.3
            for tenant in tenants[1:]:
                kept, _ = await decide(ledger, tenant)
                assert kept.granted is True
        await client.ping()
    finally:
        cluster.primaries[0].start()
    until(cluster.is_settled, "the cluster is whole again")
    await ask_until_granted(ledger, tenants[0])


async def test_preflight_names_a_cluster(cluster: Cluster, client: RedisClient) -> None:
    """What kind of Redis it is, and that scripts run on each primary."""
    findings = {finding.name: finding for finding in await check_redis(client)}
    assert client.kind is Kind.CLUSTER
    assert findings["redis"].status is Status.OK
    assert findings["redis"].detail.startswith("cluster of 3 primaries")
    assert findings["redis scripts"].status is Status.OK


async def test_one_primary_without_scripts_fails_the_preflight(
    cluster: Cluster, client: RedisClient
) -> None:
    """C14: it is enough that one of them forbids EVALSHA."""
    cluster.primaries[1].ask("ACL", "SETUSER", "default", "-evalsha")
    try:
        findings = {finding.name: finding for finding in await check_redis(client)}
    finally:
        cluster.primaries[1].ask("ACL", "SETUSER", "default", "+evalsha")
    assert findings["redis scripts"].status is Status.FAIL
    with suppress(RedisError):
        await client.ping()
