"""The Lua scripts execute the Python specification: the same operations, the same replies."""

import asyncio
import copy
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from redis.asyncio import Redis

from gateway.adapters.ledger import RedisLedger
from gateway.adapters.redis import connect_redis
from gateway.domain import admission
from gateway.domain.admission import Demand, Granted, Lease, TenantState
from gateway.domain.scopes import ScopeLimits
from gateway.serving.ports import HeldLease

START_MS = 1_800_000_000_000
TTL_MS = 10_000
KEYS = ("k1", "k2")
MODELS = ("m|odd:name", "m2")
# Mostly loose, and small enough that a demand often meets a limit exactly.
LIMIT = st.one_of(st.none(), st.none(), st.integers(0, 2), st.integers(3, 12))
TOKEN_LIMIT = st.one_of(st.none(), st.none(), st.integers(0, 6), st.integers(7, 24))

DrawnDemand = tuple[int, int, int, bool]
DEMAND = st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 5), st.booleans())


def scope_names(key: str, model: str) -> tuple[str, ...]:
    return ("tenant", f"key:{key}", f"model:{model}", f"key:{key}/model:{model}")


SCOPES = st.sampled_from([s for k in KEYS for m in MODELS for s in scope_names(k, m)])


class LedgerParity(RuleBasedStateMachine):
    """Drives the specification and a real server side by side, on one clock that may jump."""

    version = 0
    redis_url: str
    loop: asyncio.AbstractEventLoop

    def __init__(self) -> None:
        super().__init__()
        self.start()

    def start(self) -> None:
        self.redis = Redis.from_url(self.redis_url)
        self.client = connect_redis(self.redis_url, timeout_ms=5000)
        self.now_ms = START_MS
        self.ledger = RedisLedger(
            self.client, ttl_ms=TTL_MS, timeout_ms=5000, clock_ms=lambda: self.now_ms
        )
        self.wait(self.redis.flushdb())
        self.state = TenantState()
        self.limits: dict[str, list[ScopeLimits]] = {}
        self.held: dict[str, HeldLease] = {}
        self.counter = 0
        self.charged: list[tuple[int, int]] = []

    def wait(self, call: Any) -> Any:
        return self.loop.run_until_complete(call)

    def offered(self, key: str, model: str, stale: bool) -> tuple[ScopeLimits, ...]:
        result = []
        for name in scope_names(key, model):
            known = self.limits.get(name) or [ScopeLimits(name, 0, None, None, None)]
            result.append(known[0] if stale else known[-1])
        return tuple(result)

    @initialize(sequences=LIMIT, tpm=TOKEN_LIMIT, rpm=LIMIT)
    def limit_the_tenant(self, sequences: int, tpm: int, rpm: int) -> None:
        self.change_limits("tenant", sequences, tpm, rpm)

    @rule(scope=SCOPES, sequences=LIMIT, tpm=TOKEN_LIMIT, rpm=LIMIT)
    def limits_change(self, scope: str, sequences: int, tpm: int, rpm: int) -> None:
        self.change_limits(scope, sequences, tpm, rpm)

    def change_limits(self, scope: str, sequences: int, tpm: int, rpm: int) -> None:
        self.version += 1
        new = ScopeLimits(scope, self.version, sequences, tpm, rpm)
        self.limits.setdefault(scope, [ScopeLimits(scope, 0, None, None, None)]).append(new)

    @rule(
        where=st.tuples(st.sampled_from(KEYS), st.sampled_from(MODELS)),
        burst=st.lists(DEMAND, min_size=1, max_size=8),
        stale=st.booleans(),
    )
    def acquire(self, where: tuple[str, str], burst: list[DrawnDemand], stale: bool) -> None:
        for drawn in burst:
            self.counter += 1
            self.acquire_one(f"{self.counter:032x}", where, drawn, stale)

    @precondition(lambda self: self.held)
    @rule(drawn=DEMAND)
    def acquire_again(self, drawn: DrawnDemand) -> None:
        """A repeated acquisition, of a live, lapsed or settled request."""
        rid = max(self.held)
        self.acquire_one(rid, (self.held[rid].key_id, self.held[rid].model), drawn, False)

    def acquire_one(
        self, rid: str, where: tuple[str, str], drawn: DrawnDemand, stale: bool
    ) -> None:
        sequences, prompt, output, maximum = drawn
        tokens = prompt + output
        demand = Demand(rid, sequences, tokens, tokens if maximum else prompt + 1)
        scopes = self.offered(*where, stale)
        expected = admission.acquire(self.state, demand, scopes, now_ms=self.now_ms, ttl_ms=TTL_MS)
        got = self.wait(self.ledger.acquire("t", *where, demand, scopes))
        assert got == expected
        if isinstance(got, Granted):
            self.held[rid] = HeldLease(
                rid, "t", *where, sequences, got.reserved_tokens, got.second, scope_names(*where)
            )

    @rule(
        pick=st.integers(0, 1 << 20),
        actual=st.integers(0, 10),
        ran=st.booleans(),
        keep=st.booleans(),
    )
    def settle(self, pick: int, actual: int, ran: bool, keep: bool) -> None:
        if not self.held:
            return
        rid = sorted(self.held)[pick % len(self.held)]
        expected = admission.settle(
            self.state, rid, actual_tokens=actual, ran=ran, now_ms=self.now_ms
        )
        got = self.wait(self.ledger.settle(self.held[rid], actual_tokens=actual, ran=ran))
        assert got == expected
        if not keep:
            del self.held[rid]

    @rule(pick=st.sets(st.integers(0, 5)))
    def renew(self, pick: set[int]) -> None:
        chosen = [self.held[rid] for i, rid in enumerate(sorted(self.held)) if i in pick]
        leases = {
            h.request_id: Lease(h.sequences, h.reserved_tokens, h.second, h.scope_names, 0)
            for h in chosen
        }
        expected = admission.renew(self.state, leases, now_ms=self.now_ms, ttl_ms=TTL_MS)
        assert self.wait(self.ledger.renew("t", chosen)) == expected

    @rule(key=st.sampled_from(KEYS), model=st.sampled_from(MODELS), stale=st.booleans())
    def observe(self, key: str, model: str, stale: bool) -> None:
        scopes = self.offered(key, model, stale)
        expected = admission.observe(self.state, scopes, now_ms=self.now_ms)
        assert self.wait(self.ledger.observe("t", scopes)) == expected

    @rule()
    def every_lease_lapses(self) -> None:
        self.now_ms += TTL_MS

    @rule(ms=st.one_of(st.integers(0, 3000), st.integers(3000, 70_000), st.just(3_700_000)))
    def time_passes(self, ms: int) -> None:
        self.now_ms += ms

    @rule(ms=st.one_of(st.integers(1, 6000), st.integers(6000, 600_000)))
    def clock_steps_back(self, ms: int) -> None:
        self.now_ms -= ms

    @rule()
    def scripts_are_flushed(self) -> None:
        self.wait(self.redis.script_flush())

    @rule()
    def nobody_changes_the_copy(self) -> None:
        """A refusal and a look change nothing but what time itself changes."""
        before = copy.deepcopy(self.state)
        admission.observe(self.state, self.offered("k1", "m2", False), now_ms=self.now_ms)
        admission.observe(before, self.offered("k1", "m2", False), now_ms=self.now_ms)
        self.wait(self.ledger.observe("t", self.offered("k1", "m2", False)))
        assert before == self.state

    @invariant()
    def running_is_what_leases_hold(self) -> None:
        """INV-1, INV-2: the counts in Redis are those of the leases that live."""
        raw = self.wait(self.redis.hgetall("weir:{t}:running"))
        counted = {name.decode(): int(n) for name, n in raw.items()}
        names = {scope for lease in self.state.leases.values() for scope in lease.scopes}
        assert counted == {name: self.state.running(name) for name in names}

    @invariant()
    def nothing_else_is_kept(self) -> None:
        """INV-1: leases, lapsed leases and settlements are the same ones, with the same times."""
        for name, expected in (
            ("leases", {r: lease.expires_at_ms for r, lease in self.state.leases.items()}),
            ("lapsed", {r: lease.expires_at_ms for r, lease in self.state.lapsed.items()}),
            ("settled", self.state.settled),
        ):
            found = self.wait(self.redis.zrange(f"weir:{{t}}:{name}", 0, -1, withscores=True))
            assert {rid.decode(): score for rid, score in found} == expected
        records = self.wait(self.redis.hkeys("weir:{t}:held"))
        assert {rid.decode() for rid in records} == {*self.state.leases, *self.state.lapsed}

    def teardown(self) -> None:
        self.wait(self.redis.aclose())
        self.wait(self.client.aclose())


@pytest.mark.timeout(300)
def test_lua_executes_the_specification(redis_url: str) -> None:
    """Any sequence of operations, clock jumps and script flushes: the same replies from both."""
    LedgerParity.redis_url = redis_url
    LedgerParity.loop = asyncio.new_event_loop()
    try:
        run_state_machine_as_test(
            LedgerParity,
            settings=settings(
                max_examples=250,
                phases=[Phase.generate],
                stateful_step_count=40,
                deadline=None,
                derandomize=True,
                suppress_health_check=list(HealthCheck),
            ),
        )
    finally:
        LedgerParity.loop.close()
