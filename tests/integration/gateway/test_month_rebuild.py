"""What a month has cost, brought back from Postgres into a store that does not know it."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from memory_ports import MemoryDirectory
from servers import flush
from sqlalchemy.ext.asyncio import AsyncEngine
from tenant_examples import a_key, a_tenant
from usage_examples import a_record, an_admission

from billing.domain.money import parse_amount
from gateway.adapters.births import Births, history_in
from gateway.adapters.journal import Journal
from gateway.adapters.ledger import RedisLedger
from gateway.adapters.postgres import async_engine
from gateway.adapters.presence import Gateways, Presence
from gateway.adapters.redis import RedisClient, connect_redis
from gateway.adapters.shipper import Shipper
from gateway.adapters.spend import PostgresSpend
from gateway.adapters.turns import RedisTurns
from gateway.domain.admission import Demand, Granted, Kind, MoneyUnknown, Paused, Refused
from gateway.domain.billing_month import month_key
from gateway.domain.lease import Admitted
from gateway.domain.scopes import ScopeLimits, scopes_of
from gateway.domain.tenant import Limits, ModelLimits
from gateway.serving.months import Months
from gateway.serving.ports import HeldLease

TTL_MS = 600
MONTH = month_key(time.time_ns() // 1_000_000, "UTC", "USD")
CENT = parse_amount("0.01", "USD")


@dataclass
class System:
    """One gateway's parts that have to do with money, on real stores."""

    ledger: RedisLedger
    journal: Journal
    shipper: Shipper
    months: Months

    async def run(
        self,
        scopes: tuple[ScopeLimits, ...],
        cents: int,
        *,
        most_cents: int | None = None,
        settled: bool = True,
    ) -> HeldLease | Refused | MoneyUnknown | Paused:
        """A request that may cost so much and then costs `cents`, to its end."""
        admission = an_admission(model="m")
        lease = await self.admit(scopes, admission, cents if most_cents is None else most_cents)
        if isinstance(lease, HeldLease):
            await self.journal.admitted(admission)
            record = a_record(
                admission,
                cost_pico=cents * CENT,
                list_cost_pico=cents * CENT,
                currency="USD",
            )
            await self.journal.ended(record)
            if settled:
                await self.ledger.settle(
                    lease, actual_tokens=1, ran=True, actual_cost_pico=cents * CENT
                )
        return lease

    async def admit(
        self, scopes: tuple[ScopeLimits, ...], admission: Admitted, most_cents: int
    ) -> HeldLease | Refused | MoneyUnknown | Paused:
        """Admission, the month rebuilt where it is not known."""
        rid = admission.request_id.hex
        demand = Demand(rid, 1, 1, 1, most_cents * CENT, MONTH)
        decision = await self.ledger.acquire("acme", "key-1", "m", demand, scopes)
        if isinstance(decision, MoneyUnknown) and await self.months.rebuild("acme", MONTH):
            decision = await self.ledger.acquire("acme", "key-1", "m", demand, scopes)
        if not isinstance(decision, Granted):
            return decision
        names = tuple(scope.scope for scope in scopes)
        return HeldLease(
            rid, "acme", "key-1", "m", 1, 1, decision.second, names, most_cents * CENT, MONTH
        )

    async def spent_cents(self, scopes: tuple[ScopeLimits, ...]) -> list[int | None]:
        """What the store says was spent in each scope."""
        uses = await self.ledger.observe("acme", scopes, MONTH)
        return [
            use.spent_pico if use.spent_pico is None else use.spent_pico // CENT for use in uses
        ]


@contextlib.asynccontextmanager
async def a_gateway(store: RedisClient, engine: AsyncEngine, folder: Path) -> AsyncIterator[System]:
    """A gateway whose journal lies in `folder`; what it has not shipped it ships at its end."""
    births = Births(store, history_in(engine))
    await births.open()
    journal = await Journal.open(folder)
    shipper = Shipper(engine, journal, interval_ms=10)
    shipper.start()
    gateways = Gateways(store, births)
    presence = Presence(gateways, journal.gateway_id, shipper)
    ledger = RedisLedger(store, ttl_ms=TTL_MS, timeout_ms=1_000, births=births)
    months = Months(
        MemoryDirectory(),
        ledger,
        births,
        gateways,
        spend=PostgresSpend(engine),
        turns=RedisTurns(store),
        lease_ttl_ms=TTL_MS,
    )
    publishing = asyncio.create_task(presence.run())
    try:
        yield System(ledger, journal, shipper, months)
    finally:
        await months.stop()
        assert await shipper.drain(5_000)
        publishing.cancel()
        await asyncio.gather(publishing, return_exceptions=True)
        await presence.leave()
        await shipper.stop()
        await journal.close()


@pytest.fixture
async def engine(database_url: str) -> AsyncIterator[AsyncEngine]:
    """An engine on a migrated database of this test's own."""
    opened = async_engine(database_url)
    yield opened
    await opened.dispose()


@pytest.fixture
async def store(redis_url: str) -> AsyncIterator[RedisClient]:
    """A client of an empty store."""
    client = connect_redis(redis_url, timeout_ms=1_000)
    yield client
    await client.aclose()


def budgets(**of: str) -> tuple[ScopeLimits, ...]:
    """The scopes of a request: `tenant`, `key`, `model` or `narrowed` may have a budget in USD."""
    tenant = Limits(
        monthly_budget=of.get("tenant"),
        models={"m": ModelLimits(monthly_budget=of.get("model"))} if "model" in of else {},
    )
    key = Limits(
        monthly_budget=of.get("key"),
        models={"m": ModelLimits(monthly_budget=of["narrowed"])} if "narrowed" in of else {},
    )
    return scopes_of(a_tenant(tenant), a_key(key), "m")


def refused_for(decision: object) -> tuple[Kind, str, int]:
    """Why, in which scope, and what was used there, in cents."""
    assert isinstance(decision, Refused), decision
    return decision.kind, decision.limits.scope, decision.used // CENT


@dataclass(frozen=True)
class BudgetOf:
    """A budget of $1.00 in one scope."""

    where: str
    name: str


BUDGETS = (
    BudgetOf("tenant", "tenant"),
    BudgetOf("key", "key:key-1"),
    BudgetOf("model", "model:m"),
    BudgetOf("narrowed", "key:key-1/model:m"),
)


@pytest.mark.parametrize(
    ("budget", "loses_store"),
    [*((budget, False) for budget in BUDGETS), (BUDGETS[0], True), (BUDGETS[2], True)],
)
async def test_m11_m12_a_restart_keeps_the_spend(
    budget: BudgetOf, loses_store: bool, redis_url: str, engine: AsyncEngine, tmp_path: Path
) -> None:
    """M11, and M12 for a model's budget: with 60 of 100 spent, 40 are left after a restart of the
    gateway, and after one of a store that comes back empty."""
    scopes = budgets(**{budget.where: "1.00"})
    store = connect_redis(redis_url, timeout_ms=1_000)
    async with a_gateway(store, engine, tmp_path) as before:
        for _ in range(6):
            assert isinstance(await before.run(scopes, 10), HeldLease)
    if loses_store:
        flush(redis_url)
    async with a_gateway(store, engine, tmp_path) as after:
        assert refused_for(await after.run(scopes, 41)) == (Kind.BUDGET, budget.name, 60)
        assert isinstance(await after.run(scopes, 40), HeldLease)
        assert refused_for(await after.run(scopes, 1)) == (Kind.BUDGET, budget.name, 100)
        assert await after.spent_cents(scopes) == [100] * 4
    await store.aclose()


async def test_r26_twenty_at_once_at_a_cap(
    store: RedisClient, engine: AsyncEngine, tmp_path: Path
) -> None:
    """R26: $1.00, twenty at once that may each cost $0.20: five are admitted, also where the month
    has to be rebuilt first, which is done once for all twenty."""
    scopes = budgets(tenant="1.00")
    async with a_gateway(store, engine, tmp_path) as gateway:
        for spent, admitted in ((0, 5), (0, 0)):
            decisions = await asyncio.gather(
                *(gateway.admit(scopes, an_admission(model="m"), 20) for _ in range(20))
            )
            assert sum(isinstance(each, HeldLease) for each in decisions) == admitted
            refused = [each for each in decisions if not isinstance(each, HeldLease)]
            assert {refused_for(each) for each in refused} == {(Kind.BUDGET, "tenant", 100)}
            assert await gateway.spent_cents(scopes) == [spent] * 4


async def test_r27_a_first_call_over_the_budget_is_not_free(
    store: RedisClient, engine: AsyncEngine, tmp_path: Path
) -> None:
    """R27: $0.01 left and up to $0.05 needed is refused, by a month that Postgres alone knew."""
    scopes = budgets(key="1.00")
    async with a_gateway(store, engine, tmp_path) as gateway:
        assert isinstance(await gateway.run(budgets(), 99), HeldLease)
        assert await gateway.spent_cents(scopes) == [None] * 4
        assert refused_for(await gateway.run(scopes, 5)) == (Kind.BUDGET, "key:key-1", 99)
        assert isinstance(await gateway.run(scopes, 1), HeldLease)


async def test_two_gateways_rebuild_what_both_have_served(
    store: RedisClient, redis_url: str, engine: AsyncEngine, tmp_path: Path
) -> None:
    """After a loss both rebuild at once while requests end on both, one settled before its record
    is shipped, one recorded and not settled yet: the store then has what all of them cost."""
    free, capped = budgets(), budgets(tenant="100.00")
    async with (
        a_gateway(store, engine, tmp_path / "a") as one,
        a_gateway(store, engine, tmp_path / "b") as other,
    ):
        both = (one, other)
        late = [await each.run(free, 7, settled=False) for each in both]
        await asyncio.gather(*(each.run(free, 3) for each in both for _ in range(20)))
        flush(redis_url)
        for each, lease in zip(both, late, strict=True):
            assert isinstance(lease, HeldLease)
            await each.ledger.settle(lease, actual_tokens=1, ran=True, actual_cost_pico=7 * CENT)

        async def busy(each: System) -> int:
            """Requests without a budget, settled all the while, until the month is known."""
            count = 0
            while (await each.spent_cents(capped))[0] is None:
                assert isinstance(await each.run(free, 1), HeldLease)
                count += 1
                await asyncio.sleep(0.02)
            return count

        counted = asyncio.gather(*(busy(each) for each in both))
        deadline_s = time.monotonic() + 20
        while not all([await each.months.rebuild("acme", MONTH) for each in both]):
            assert time.monotonic() < deadline_s
        more = sum(await counted)
        assert await one.spent_cents(capped) == [2 * 7 + 40 * 3 + more] * 4
        assert isinstance(await one.run(capped, 5), HeldLease)
        assert await other.spent_cents(capped) == [2 * 7 + 40 * 3 + more + 5] * 4
