"""A fleet in small for the rebuild of a month: requests that run, are recorded, shipped and settled
by two gateways, a store that can be lost, and a Postgres that has what was shipped.

The store executes admission's specification. Every question that a rebuild asks waits at a
turnstile until the test lets it through, so that anything can happen between any two steps.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from uuid import UUID

from memory_ports import TTL_MS, MemoryDirectory, MemoryLedger, StandingClock

from gateway.domain import admission
from gateway.domain.admission import Demand, Granted
from gateway.domain.billing_month import BillingMonth, month_key, month_of
from gateway.domain.presence import Standing, waited_for
from gateway.domain.request_id import request_id
from gateway.domain.scopes import ScopeLimits
from gateway.domain.spend import Cost, scope_names, spent_by_scope
from gateway.serving.months import Months
from gateway.serving.ports import HeldLease

TENANT = "acme"
BUDGET_OF_NONE = (None, None, None)


class Turnstile:
    """Lets one waiting step through at a time, when told to."""

    def __init__(self) -> None:
        self.waiting: list[asyncio.Future[None]] = []

    async def wait(self) -> None:
        """Return when the test says so."""
        step = asyncio.get_running_loop().create_future()
        self.waiting.append(step)
        try:
            await step
        finally:
            if step in self.waiting:
                self.waiting.remove(step)

    async def release(self, index: int) -> None:
        """Let a step through, and run on to the next one."""
        self.waiting.pop(index % len(self.waiting)).set_result(None)
        await settle_down()


async def settle_down() -> None:
    """Run whatever can run."""
    for _ in range(12):
        await asyncio.sleep(0)


@dataclass
class Request:
    """An admitted request and how far it has come."""

    lease: HeldLease
    gateway: int
    cost_pico: int
    recorded: bool = False
    owed: bool = False
    """Its settlement is under way or withheld."""
    acknowledged: bool = False
    """The store was heard to have taken its settlement."""

    @property
    def cost(self) -> Cost:
        return Cost(self.lease.key_id, self.lease.model, self.cost_pico)


@dataclass
class Aim:
    """What one gateway must have shipped and settled before it says so."""

    instant_ms: int
    records: int
    owed: list[Request]


@dataclass
class OneGateway:
    """Its journal, and how much of it is in Postgres."""

    journal: list[Request] = field(default_factory=list)
    shipped: int = 0
    through_ms: int = 0
    aim: Aim | None = None


class World:
    """All of it. Methods without `async` are what happens; the rest are ports of a rebuild."""

    def __init__(self) -> None:
        self.clock = StandingClock()
        self.turnstile = Turnstile()
        self.ledger = MemoryLedger(self.clock)
        self.directory = MemoryDirectory()
        self.month = month_key(self.clock.now_ms(), "UTC", "USD")
        self.born = 0
        self.gateways = [OneGateway(), OneGateway()]
        self.requests: list[Request] = []
        self.rows: list[Request] = []
        self.instant_ms = self.clock.now_ms()
        self.turn_is_anothers = False
        self._number = 0

    # What happens.

    def admit(self, gateway: int, key: str, model: str, cost_pico: int) -> None:
        """A request is admitted that may cost so much."""
        self._number += 1
        rid = request_id(self.clock.now_ms(), self._number).hex
        names = scope_names(key, model)
        demand = Demand(rid, 1, 1, 1, cost_pico, self.month)
        scopes = tuple(ScopeLimits(name, 1, *BUDGET_OF_NONE) for name in names)
        granted = admission.acquire(
            self.state, demand, scopes, now_ms=self.clock.now_ms(), ttl_ms=TTL_MS
        )
        assert isinstance(granted, Granted)
        lease = HeldLease(
            rid, TENANT, key, model, 1, 1, granted.second, names, cost_pico, self.month
        )
        self.requests.append(Request(lease, gateway, cost_pico))

    def record(self, request: Request, part: int) -> None:
        """It ends, and cost a part of what it might have (in hundredths)."""
        request.cost_pico = request.cost_pico * part // 100
        request.recorded = True
        self.gateways[request.gateway].journal.append(request)

    def owe(self, request: Request) -> None:
        """Its gateway begins to settle it, and no longer renews its lease."""
        request.owed = True

    def settle(self, request: Request, *, heard: bool = True) -> None:
        """The store takes its settlement; whether the gateway hears of it."""
        request.owed = True
        admission.settle(
            self.state,
            request.lease.request_id,
            actual_tokens=1,
            ran=True,
            now_ms=self.clock.now_ms(),
            actual_cost_pico=request.cost_pico,
            held=_specified(request.lease),
        )
        if heard:
            request.owed, request.acknowledged = False, True

    def ship(self, gateway: int, rows: int) -> None:
        """The next of a gateway's records are committed."""
        one = self.gateways[gateway]
        self.rows += one.journal[one.shipped : one.shipped + rows]
        one.shipped = min(len(one.journal), one.shipped + rows)

    def publish(self, gateway: int) -> None:
        """A turn of a gateway's presence: reach what it aims at, or aim at what there is now."""
        one = self.gateways[gateway]
        if one.aim is None:
            owed = [r for r in self.requests if r.gateway == gateway and r.owed]
            one.aim = Aim(self._instant(), len(one.journal), owed)
        elif one.shipped >= one.aim.records and not any(r.owed for r in one.aim.owed):
            one.through_ms, one.aim = one.aim.instant_ms, None

    def renew(self, gateway: int) -> None:
        """A gateway renews what it holds."""
        held = {
            request.lease.request_id: _specified(request.lease)
            for request in self.requests
            if request.gateway == gateway and not request.owed and not request.acknowledged
        }
        admission.renew(self.state, held, now_ms=self.clock.now_ms(), ttl_ms=TTL_MS)

    def lose_the_store(self) -> None:
        """It comes back empty. What gateways hold they have registered again once a lease time is
        over, at the latest."""
        self.clock.advance(1)
        self.ledger.lose_everything()
        self.born = self.clock.now_ms()

    def pass_time(self, ms: int) -> None:
        """The store's clock goes on; leases may lapse, those that a loss forgot may not."""
        before_ms = self.clock.now_ms()
        if self.born and before_ms < self.born + TTL_MS <= before_ms + ms:
            for gateway in range(len(self.gateways)):
                self.renew(gateway)
        self.clock.advance(ms)

    @property
    def state(self) -> admission.TenantState:
        """What the store knows of the tenant."""
        return self.ledger.states[TENANT]

    @property
    def is_known(self) -> bool:
        """Whether the store knows the month."""
        month = self.state.months.get(self.month)
        return month is not None and month.known

    def spent(self) -> dict[str, int]:
        """What the store says was spent, by scope."""
        month = self.state.months[self.month]
        return {name: m.spent_pico for name, m in month.money.items() if m.spent_pico}

    def taken(self) -> dict[str, int]:
        """What all recorded requests cost of which the store may have taken the settlement."""
        gone = self.state
        open_ids = {*gone.leases, *gone.lapsed}
        return spent_by_scope(
            (r.cost for r in self.requests if r.recorded and r.lease.request_id not in open_ids),
            (),
        )

    def _instant(self) -> int:
        self.instant_ms = max(self.clock.now_ms(), self.instant_ms)
        return self.instant_ms

    # The ports of a rebuild.

    def months(self) -> Months:
        """What a gateway rebuilds with."""
        return Months(
            self.directory,
            _Steps(self),
            _Steps(self),
            self,
            spend=self,
            turns=self,
            lease_ttl_ms=TTL_MS,
        )

    async def ask(self) -> int:
        await self.turnstile.wait()
        self.instant_ms = self._instant() + 1
        return self.instant_ms

    async def waited_for(self, instant_ms: int) -> tuple[str, ...]:
        await self.turnstile.wait()
        now_ms = self.clock.now_ms()
        standing = {
            str(number): Standing(now_ms, one.through_ms)
            for number, one in enumerate(self.gateways)
        }
        return waited_for(standing, instant_ms, now_ms=now_ms)

    async def claim(self, tenant_id: str, what: str, holder: str) -> bool:
        """Turns are advice: everybody has it at once unless a test says otherwise."""
        return not self.turn_is_anothers

    async def release(self, tenant_id: str, what: str, holder: str) -> None:
        assert (tenant_id, what) == (TENANT, self.month)

    @asynccontextmanager
    async def snapshot(
        self, tenant_id: str, month: BillingMonth
    ) -> AsyncIterator["MemorySnapshot"]:
        assert (tenant_id, month) == (TENANT, month_of(self.month))
        yield MemorySnapshot(self)


class MemorySnapshot:
    """The rows as they were at the first question."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._rows: list[Request] | None = None

    async def costs(self) -> list[Cost]:
        await self._world.turnstile.wait()
        self._rows = self._rows or list(self._world.rows)
        sums: Counter[tuple[str, str]] = Counter()
        for row in self._rows:
            sums[row.lease.key_id, row.lease.model] += row.cost_pico
        return [Cost(*names, pico) for names, pico in sums.items()]

    async def costs_of(self, request_ids: Collection[str]) -> list[Cost]:
        await self._world.turnstile.wait()
        assert self._rows is not None
        named = {UUID(rid).hex for rid in request_ids}
        return [row.cost for row in self._rows if row.lease.request_id in named]


class _Steps(MemoryLedger):
    """The world's ledger and births, one step at a time."""

    def __init__(self, world: World) -> None:
        super().__init__(world.clock)
        self._world = world

    async def _answer(self, tenant_id: str = "") -> None:
        await self._world.turnstile.wait()
        self.states = self._world.ledger.states

    async def born_ms(self, tenant_id: str) -> int:
        await self._answer()
        return self._world.born


def _specified(lease: HeldLease) -> admission.Lease:
    return admission.Lease(1, 1, lease.second, lease.scope_names, 0, lease.cost_pico, lease.month)
