"""What happens most (grants and settlements, limits that stay, no money)
has a way of its own in the scripts: it decides as the specification does, to the token."""

import asyncio
import itertools
from collections.abc import Awaitable, Iterator
from typing import Any, TypeVar
from uuid import uuid4

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, example, given, settings
from ledger_dump import kept_by_ledger, kept_by_specification

from gateway.adapters.ledger import RedisLedger
from gateway.adapters.redis import RedisClient, connect_redis
from gateway.domain import admission
from gateway.domain.admission import Demand, Granted, TenantState
from gateway.domain.scopes import ScopeLimits
from gateway.serving.ports import HeldLease

START_MS = 1_800_000_000_000
TTLS_MS = (1_000_000, 5_000)
NAMES = ("tenant", "key:k", "model:m", "key:k/model:m")
LIMITS = st.tuples(
    st.sampled_from([None, None, 3, 6]),
    st.sampled_from([None, 9, 20, 33]),
    st.sampled_from([None, None, 4, 9]),
    st.sampled_from([*[None] * 9, 5]),
)
MUCH = st.sampled_from([2**24 - 9, 2**24 - 1, 2**24, 2**40 + 1])
"""Around what fits into a window's narrow layout."""
TOKENS = st.one_of(*[st.integers(1, 8)] * 8, MUCH)
ACQUIRE = st.tuples(st.just("acquire"), st.integers(1, 3), TOKENS, st.booleans())
SETTLE = st.tuples(st.just("settle"), st.integers(0, 50), st.integers(0, 10), st.booleans())
WAIT_MS = st.sampled_from(
    [0, 300, 1_000, 1_000, 2_000, 7_000, 30_000, 59_000, 60_000, 61_000, -2_000, -9_000]
)
WAIT = st.tuples(st.just("wait"), WAIT_MS, st.just(0), st.just(False))
STEPS = st.lists(st.one_of(ACQUIRE, ACQUIRE, SETTLE, WAIT), min_size=5, max_size=30)
LOOSE = [(None, None, None, None)] * 4
Reply = TypeVar("Reply")
_tenants = itertools.count()


class Side:
    """The specification and the store, side by side."""

    def __init__(
        self, client: RedisClient, limits: list[tuple[int | None, ...]], ttl_ms: int
    ) -> None:
        self.client = client
        self.tenant = f"{uuid4().hex}-{next(_tenants)}"
        self.now_ms = START_MS
        self.ttl_ms = ttl_ms
        self.state = TenantState()
        self.scopes = tuple(ScopeLimits(NAMES[i], 1, *limits[i]) for i in range(4))
        self.held: dict[str, HeldLease] = {}
        self.ledger = RedisLedger(
            client, ttl_ms=ttl_ms, timeout_ms=5_000, clock_ms=lambda: self.now_ms
        )

    async def acquire(self, number: int, sequences: int, tokens: int, is_maximum: bool) -> None:
        rid = f"{number:032x}"
        demand = Demand(rid, sequences, tokens, tokens if is_maximum else 1)
        expected = admission.acquire(
            self.state, demand, self.scopes, now_ms=self.now_ms, ttl_ms=self.ttl_ms
        )
        got = await self.ledger.acquire(self.tenant, "k", "m", demand, self.scopes)
        assert got == expected
        if isinstance(got, Granted):
            self.held[rid] = HeldLease(
                rid, self.tenant, "k", "m", sequences, got.reserved_tokens, got.second, NAMES
            )

    async def settle(self, pick: int, used: int, ran: bool) -> None:
        if self.held:
            lease = self.held.pop(sorted(self.held)[pick % len(self.held)])
            expected = admission.settle(
                self.state, lease.request_id, actual_tokens=used, ran=ran, now_ms=self.now_ms
            )
            assert await self.ledger.settle(lease, actual_tokens=used, ran=ran) == expected

    async def run(self, steps: list[tuple[Any, ...]]) -> None:
        for number, (what, first, second, third) in enumerate(steps):
            if what == "acquire":
                await self.acquire(number, first, second, third)
            elif what == "settle":
                await self.settle(first, second, third)
            else:
                self.now_ms += first
            kept = await kept_by_ledger(self.client, self.tenant, self.now_ms)
            if kept["scopes"]:
                assert kept == kept_by_specification(self.state, self.now_ms)


def _long() -> list[tuple[Any, ...]]:
    """A window with gaps, its leases settled from the middle outwards, and left to age."""
    pauses = (1_000, 3_000, 1_000, 1_000, 9_000)
    fill = [(("acquire", 1, 8, True), ("wait", pauses[i % 5], 0, False)) for i in range(16)]
    ends = [("settle", 7 - i // 2 if i % 2 else i, i % 9, i % 4 > 0) for i in range(16)]
    age = [("wait", 1_000, 0, False), ("acquire", 1, 2, True)] * 8
    return [*itertools.chain(*fill), *ends, *age]


def _steps_back(ms: int) -> list[tuple[Any, ...]]:
    """On a clock that has gone forward by more: else the keys' time to live is wrong too."""
    one, ends = ("acquire", 1, 8, True), ("settle", 0, 3, True)
    forward, back = ("wait", 30_000, 0, False), ("wait", -ms, 0, False)
    return [one, forward, one, one, back, one, ends, ends, one, forward, one, ends, ends]


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


@settings(
    max_examples=150, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
@given(
    limits=st.lists(LIMITS, min_size=4, max_size=4), steps=STEPS, ttl_ms=st.sampled_from(TTLS_MS)
)
@example(limits=LOOSE, steps=_long(), ttl_ms=TTLS_MS[0])
@example(limits=LOOSE, steps=_steps_back(2_000), ttl_ms=TTLS_MS[0])
@example(limits=LOOSE, steps=_steps_back(9_000), ttl_ms=TTLS_MS[0])
def test_the_usual_way_is_the_specification(
    loop: asyncio.AbstractEventLoop, redis_url: str, limits: Any, steps: Any, ttl_ms: int
) -> None:
    async def compare() -> None:
        client = connect_redis(redis_url, timeout_ms=5_000)
        try:
            await Side(client, limits, ttl_ms).run(steps)
        finally:
            await client.aclose()

    _wait(loop, compare())


def _wait(loop: asyncio.AbstractEventLoop, call: Awaitable[Reply]) -> Reply:
    async def awaited() -> Reply:
        return await call

    return loop.run_until_complete(awaited())
