"""A late reply, of a Redis or of a gateway that was held up, turns nobody away from the store."""

import asyncio
import time
from collections.abc import AsyncIterator

import pytest
from memory_gateway import until
from pausable_proxy import PausableProxy, pausable_proxy
from tenant_examples import a_key, a_tenant

from gateway.adapters.ledger import RedisLedger
from gateway.adapters.redis import connect_redis
from gateway.clock import SystemClock
from gateway.domain.admission import Demand
from gateway.domain.tenant import Limits
from gateway.serving.authenticate import Caller
from gateway.serving.leases import Leases
from gateway.serving.ports import HeldLease
from gateway.serving.store_watch import StoreState

pytestmark = pytest.mark.fault
TIMEOUT_MS = 100
HELD_UP_S = 0.15
RETURN_S = 0.4
"""A ping each 100 ms, and the longest wait before a connection is made again."""


class Admitting:
    """Leases on a real server, by way of a proxy."""

    def __init__(self, proxy: PausableProxy) -> None:
        self.proxy = proxy
        self.redis = connect_redis(proxy.url, timeout_ms=TIMEOUT_MS)
        ledger = RedisLedger(self.redis, ttl_ms=2_000, timeout_ms=TIMEOUT_MS)
        self.leases = Leases(
            ledger, SystemClock(), renew_ms=500, ttl_ms=2_000, timeout_ms=TIMEOUT_MS
        )
        self.states: set[StoreState] = set()
        self._asked = 0

    async def ask(self) -> HeldLease:
        self._asked += 1
        demand = Demand(f"{self._asked:032x}", 1, 1, 1)
        caller = Caller(a_tenant(Limits(max_sequences=1_000)), a_key())
        lease, _ = await self.leases.acquire(caller, "m", demand)
        self.states.add(self.leases.watch.state)
        return lease

    async def admit_and_settle(self, count: int) -> None:
        """That many at once."""
        for lease in await asyncio.gather(*(self.ask() for _ in range(count))):
            await self.leases.settle(lease, actual_tokens=1, ran=True)


@pytest.fixture
async def admitting(redis_url: str) -> AsyncIterator[Admitting]:
    """Connected, and with its loops."""
    async with pausable_proxy(redis_url) as proxy:
        admitting = Admitting(proxy)
        await admitting.admit_and_settle(1)
        task = asyncio.create_task(admitting.leases.run())
        try:
            yield admitting
        finally:
            task.cancel()
            await asyncio.wait([task])
            await admitting.redis.aclose()


async def test_an_event_loop_that_was_held_up_refuses_nobody(admitting: Admitting) -> None:
    """Replies that wait to be read are read, though every timer has run out; again and again."""
    for _ in range(5):
        asking = asyncio.create_task(admitting.admit_and_settle(20))
        await asyncio.sleep(0)
        time.sleep(HELD_UP_S)  # noqa: ASYNC251 - what is tested
        await asking
    assert StoreState.AWAY not in admitting.states
    assert admitting.leases.reachable
    assert (admitting.leases.held, admitting.leases.unsettled) == (0, 0)


async def test_a_store_that_stood_still_for_a_moment_refuses_nobody(admitting: Admitting) -> None:
    """All replies come at once, and the ping's with them."""
    for _ in range(5):
        asking = asyncio.create_task(admitting.admit_and_settle(20))
        admitting.proxy.hang()
        await asyncio.sleep(0.06)
        await admitting.proxy.heal()
        await asking
    assert StoreState.AWAY not in admitting.states
    assert (admitting.leases.held, admitting.leases.unsettled) == (0, 0)


async def test_a_slow_store_is_not_away(admitting: Admitting) -> None:
    """Within the time-out is in time, though each reply is doubted before it comes."""
    admitting.proxy.delay_s = 0.07
    for _ in range(5):
        await admitting.admit_and_settle(5)
    assert StoreState.AWAY not in admitting.states


async def test_a_loss_that_is_over_is_soon_forgotten(admitting: Admitting) -> None:
    """Half a second without Redis costs little more than that."""
    admitting.proxy.hang()
    await until(lambda: not admitting.leases.reachable)
    await admitting.proxy.heal()
    began = time.monotonic()
    await until(lambda: admitting.leases.reachable)
    assert time.monotonic() - began < 3 * RETURN_S
    await admitting.admit_and_settle(5)
