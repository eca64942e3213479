"""A late reply, of a Redis or of a gateway that was held up, turns nobody away from the store."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass

import pytest
from memory_gateway import until
from pausable_proxy import PausableProxy, pausable_proxy
from starvation import USUAL_S, Control, control_of_store
from tenant_examples import a_key, a_tenant

from gateway.adapters.ledger import RedisLedger
from gateway.adapters.redis import connect_redis
from gateway.clock import SystemClock
from gateway.domain.admission import Demand
from gateway.domain.tenant import Limits
from gateway.errors import WeirError
from gateway.serving.authenticate import Caller
from gateway.serving.leases import Leases
from gateway.serving.ports import HeldLease
from gateway.serving.store_watch import REGULAR_PING_S, StoreState

pytestmark = [pytest.mark.fault, pytest.mark.timeout(300)]
TIMEOUT_MS = 100
HELD_UP_S = 0.15
DELAY_S = 0.07
TRIES, JUDGED = 100, 5
CALM_S, CALM_WITHIN_S = 0.15, 20.0
"""So many rounds at most, of which so many are judged."""
RETURN_S = 0.4
"""A ping each 100 ms, and the longest wait before a connection is made again."""


class Admitting:
    """Leases on a real server, by way of a proxy."""

    def __init__(self, proxy: PausableProxy) -> None:
        self.proxy = proxy
        self.redis = connect_redis(proxy.url, timeout_ms=TIMEOUT_MS)
        self.ledger = RedisLedger(self.redis, ttl_ms=2_000, timeout_ms=TIMEOUT_MS)
        self.leases = Leases(
            self.ledger, SystemClock(), renew_ms=500, ttl_ms=2_000, timeout_ms=TIMEOUT_MS
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
        asked = await asyncio.gather(*(self.ask() for _ in range(count)), return_exceptions=True)
        granted = [each for each in asked if isinstance(each, HeldLease)]
        await asyncio.gather(*(self.settled(lease) for lease in granted))
        for each in asked:
            if isinstance(each, BaseException):
                raise each

    async def ask_all_else(self) -> None:
        """What a script is asked for the first time takes two replies, and so twice the delay."""
        await self.ledger.ping()
        await self.ledger.active_page(0)
        await self.ledger.take_out(["nobody"], before_ms=0)
        await self.ledger.claim_sweep("a test", for_ms=1)
        await self.ledger.reap("nobody")

    async def settled(self, lease: HeldLease) -> None:
        await self.leases.settle(lease, actual_tokens=1, ran=True)


@pytest.fixture
async def admitting(redis_url: str) -> AsyncIterator[Admitting]:
    """Connected, its scripts known to the server, and with its loops."""
    async with pausable_proxy(redis_url) as proxy:
        admitting = Admitting(proxy)
        await admitting.admit_and_settle(1)
        await admitting.ask_all_else()
        task = asyncio.create_task(admitting.leases.run())
        try:
            yield admitting
        finally:
            task.cancel()
            await asyncio.wait([task])
            await admitting.redis.aclose()


@pytest.fixture
def control(redis_url: str) -> Iterator[Control]:
    """How long the server itself, or this process, got no core."""
    with control_of_store(redis_url) as asking:
        yield asking


@dataclass
class Rounds:
    """A fault again and again, judged where it lasted no longer than the test says: on a machine
    that gave no core meanwhile it was longer, and then it is a loss, and may be taken for one."""

    admitting: Admitting
    control: Control
    judged: int = 0

    async def play(self, play: Callable[[], Awaitable[None]], *, within_s: float) -> None:
        """Until enough were judged: nobody was refused in those."""
        for _ in range(TRIES):
            calm_since = await self._calm()
            self.admitting.states.clear()
            began = time.monotonic()
            refused: WeirError | None = None
            try:
                await play()
            except WeirError as error:
                refused = error
            ended = time.monotonic()
            if ended - began >= within_s or self.control.lost_s(calm_since, ended):
                continue
            assert refused is None
            assert StoreState.AWAY not in self.admitting.states
            assert self.admitting.leases.reachable
            assert (self.admitting.leases.held, self.admitting.leases.unsettled) == (0, 0)
            self.judged += 1
            if self.judged == JUDGED:
                return
        pytest.fail(f"{self.judged} of {TRIES} rounds lasted less than {within_s} s")

    async def _calm(self) -> float:
        """Wait until nothing is left of an earlier round, and of pings that this process was too
        late for. Since when that is so."""
        leases, looked_at = self.admitting.leases, time.monotonic()
        since = looked_at
        give_up_at = since + CALM_WITHIN_S
        while looked_at - since < CALM_S:
            assert looked_at < give_up_at, "the machine is never calm"
            await asyncio.sleep(0.005)
            now = time.monotonic()
            is_calm = now - looked_at < USUAL_S and leases.reachable and not leases.unsettled
            looked_at = now
            if not is_calm:
                since = now
        return since


async def test_an_event_loop_that_was_held_up_refuses_nobody(
    admitting: Admitting, control: Control
) -> None:
    """Replies that wait to be read are read, though every timer has run out; again and again. A
    loss is known half a time-out later at the earliest, when the ping after it is not answered."""

    async def held_up() -> None:
        asking = asyncio.create_task(admitting.admit_and_settle(20))
        await asyncio.sleep(0)
        time.sleep(HELD_UP_S)  # noqa: ASYNC251 - what is tested
        await asking

    await Rounds(admitting, control).play(held_up, within_s=HELD_UP_S + TIMEOUT_MS / 2000)


async def test_a_store_that_stood_still_for_a_moment_refuses_nobody(
    admitting: Admitting, control: Control
) -> None:
    """All replies come at once, and the ping's with them. A time-out is no moment any more."""

    async def stood_still() -> None:
        asking = asyncio.create_task(admitting.admit_and_settle(20))
        admitting.proxy.hang()
        try:
            await asyncio.sleep(0.06)
        finally:
            await admitting.proxy.heal()
        await asking

    await Rounds(admitting, control).play(stood_still, within_s=TIMEOUT_MS / 1000)


async def test_a_slow_store_is_not_away(admitting: Admitting, control: Control) -> None:
    """Within the time-out is in time, though each reply is doubted before it comes. Where the two
    replies of a round took so long together, each took less than the time-out."""
    admitting.proxy.delay_s = DELAY_S

    async def slow() -> None:
        await admitting.admit_and_settle(5)

    await Rounds(admitting, control).play(slow, within_s=DELAY_S + TIMEOUT_MS / 1000)


async def test_an_idle_store_that_is_slow_is_not_away(
    admitting: Admitting, control: Control
) -> None:
    """The same where nothing but the regular ping is asked."""
    admitting.proxy.delay_s = DELAY_S

    async def idle() -> None:
        began = time.monotonic()
        while time.monotonic() - began < 2 * REGULAR_PING_S:
            looked_at = time.monotonic()
            await asyncio.sleep(0.005)
            admitting.states.add(admitting.leases.watch.state)
            if time.monotonic() - looked_at > TIMEOUT_MS / 1000 - DELAY_S:
                await asyncio.sleep(1.0)  # held up itself: not to be judged

    await Rounds(admitting, control).play(idle, within_s=4 * REGULAR_PING_S)


async def test_a_loss_that_is_over_is_soon_forgotten(admitting: Admitting) -> None:
    """Half a second without Redis costs little more than that, at three tries at most."""
    took_s = []
    for _ in range(3):
        admitting.proxy.hang()
        await until(lambda: not admitting.leases.reachable)
        await admitting.proxy.heal()
        began = time.monotonic()
        await until(lambda: admitting.leases.reachable)
        took_s.append(time.monotonic() - began)
        if took_s[-1] < 3 * RETURN_S:
            break
    assert min(took_s) < 3 * RETURN_S, took_s
    await until(lambda: admitting.leases.unsettled == 0)
    await admitting.settled(await admitting.ask())
