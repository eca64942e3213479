"""What a gateway had recorded and not settled when it was gone is settled, and once."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from memory_ports import MemoryDirectory
from reaping import Graves, died, graves, journal_of, reaped
from servers import eventually
from shipping import DRAIN_MS
from tenant_examples import a_key, a_tenant
from usage_examples import a_record, an_admission

from billing.domain.money import parse_amount
from billing.domain.usage_record import UsageRecord
from gateway.adapters.births import Births, history_in
from gateway.adapters.ledger import RedisLedger
from gateway.adapters.second_copy import SecondCopy
from gateway.adapters.second_copy_records import encode_copy
from gateway.clock import SystemClock
from gateway.domain.admission import Demand, Granted
from gateway.domain.billing_month import month_key
from gateway.domain.lease import Admitted
from gateway.domain.scopes import ScopeLimits, scopes_of
from gateway.domain.tenant import Limits
from gateway.serving.earlier_life import settle_recorded
from gateway.serving.leases import Leases

TTL_MS = 400
COST_PICO = parse_amount("0.25", "USD")
TENANT = a_tenant(Limits(max_sequences=50, tpm=100_000, monthly_budget="9"))
SCOPES: tuple[ScopeLimits, ...] = scopes_of(TENANT, a_key(), "smollm2-135m")


def month(admission: Admitted) -> str:
    """The month that it is billed in."""
    return month_key(admission.admitted_at_ms, TENANT.time_zone, "USD")


class Tenant:
    """Its counters in the store, and a gateway that settles."""

    def __init__(self, ledger: RedisLedger) -> None:
        self.ledger = ledger
        self.leases = Leases(
            ledger, SystemClock(), renew_ms=TTL_MS // 4, ttl_ms=TTL_MS, timeout_ms=1_000
        )
        self.told = 0

    async def admit(self) -> Admitted:
        """A request with a lease that nobody renews, which may cost twice what it will."""
        admission = an_admission(api_key_id=a_key().id, currency="USD")
        demand = Demand(admission.request_id.hex, 1, 112, 112, 2 * COST_PICO, month(admission))
        decision = await self.ledger.acquire("acme", a_key().id, admission.model, demand, SCOPES)
        assert isinstance(decision, Granted)
        return admission

    async def use(self, admission: Admitted) -> list[tuple[int, int, int | None, int | None]]:
        """Sequences, tokens, money spent and reserved, of each scope."""
        uses = await self.ledger.observe("acme", SCOPES, month(admission))
        return [(use.sequences, use.tokens, use.spent_pico, use.reserved_pico) for use in uses]

    def settle(self, records: list[UsageRecord]) -> None:
        """As a gateway's reaper and shipper tell it."""
        self.told += len(records)
        settle_recorded(records, MemoryDirectory(), self.leases)

    async def settled(self) -> None:
        """Until nothing is left to settle."""
        await eventually(lambda: not self.leases.owed, what="all is settled")


@asynccontextmanager
async def a_tenant_of(system: Graves) -> AsyncIterator[Tenant]:
    """Whose month the store knows: nothing was spent in it."""
    births = Births(system.redis, history_in(system.engine))
    await births.open()
    ledger = RedisLedger(system.redis, ttl_ms=TTL_MS, timeout_ms=1_000, births=births)
    now = month(an_admission())
    begun = await ledger.begin_month("acme", now)
    assert begun is not None
    assert await ledger.finish_month("acme", now, begun.at_ms, {})
    made = Tenant(ledger)
    running = asyncio.create_task(made.leases.run())
    yield made
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_counters_are_not_settled_twice(
    database_url: str, redis_url: str, tmp_path: Path
) -> None:
    """R28: two reapers and then the journal itself settle an end that its gateway had not:
    tokens and money are charged once, what was reserved beyond is free. What was running keeps its
    tokens charged, and costs nothing."""
    async with graves(database_url, redis_url) as system, a_tenant_of(system) as tenant:
        ended, running = await tenant.admit(), await tenant.admit()
        gateway_id = await died(system, tmp_path, ended, running)
        record = a_record(ended, cost_pico=COST_PICO, list_cost_pico=COST_PICO, currency="USD")
        copies = SecondCopy(system.redis, gateway_id)
        copies.add(ended.request_id, encode_copy(record))
        assert await copies.flush()
        await eventually_lapsed(tenant, ended)
        once = [(0, 112 + 32, COST_PICO, 0)] * len(SCOPES)
        reapers = [system.reaper(f"gw-{number}") for number in range(2)]
        await asyncio.gather(*(reaped(reaper) for reaper in reapers))
        tenant.settle(system.ends)
        await tenant.settled()
        assert (tenant.told, await tenant.use(ended)) == (2, once)
        tenant.settle([record])  # a third, as one that began after the first was killed
        await tenant.settled()
        assert await tenant.use(ended) == once
        async with journal_of(system, tmp_path) as (journal, shipper):
            await journal.ended(record)
            assert await shipper.drain(DRAIN_MS)
        tenant.settle([record])
        await tenant.settled()
        assert await tenant.use(ended) == once


async def eventually_lapsed(tenant: Tenant, admission: Admitted) -> None:
    """Until the leases of the gateway that is gone are free, their tokens charged as reserved."""
    while (await tenant.use(admission))[0][0]:  # noqa: ASYNC110 - the store's own time
        await asyncio.sleep(0.05)
    assert await tenant.use(admission) == [(0, 224, 0, 0)] * len(SCOPES)
