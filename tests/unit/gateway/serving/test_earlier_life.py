"""What a gateway recorded in an earlier life and may not have settled: settled again, once."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from memory_gateway import until
from memory_ports import TTL_MS, MemoryLedger, StandingClock
from tenant_examples import a_key, a_tenant
from usage_examples import a_record, an_admission

from gateway.domain import admission
from gateway.domain.admission import Demand, TenantState
from gateway.domain.billing_month import month_key
from gateway.domain.scopes import scopes_of
from gateway.serving import leases as leases_module
from gateway.serving.earlier_life import lost_lease, recorded_lease
from gateway.serving.leases import Leases

COST_PICO = 700


class NextLife:
    """A gateway that has just started, before a store that may know the earlier one's request."""

    def __init__(self) -> None:
        self.clock = StandingClock()
        self.ledger = MemoryLedger(self.clock)
        self.uncounted: list[tuple[str, str]] = []
        self.leases = Leases(
            self.ledger,
            self.clock,
            renew_ms=1,
            on_uncounted=lambda *what: self.uncounted.append(what),
        )
        self.admitted = an_admission(self.clock.now_ms(), model="m", api_key_id=a_key().id)
        self.record = a_record(
            self.admitted, cost_pico=COST_PICO, list_cost_pico=COST_PICO, currency="USD"
        )
        self.month = month_key(self.clock.now_ms(), "UTC", "USD")
        self.rid = self.admitted.request_id.hex
        begun_month = admission.begin_month(self.state, self.month, now_ms=self.clock.now_ms())
        assert begun_month is not None
        admission.finish_month(
            self.state, self.month, begun_month.at_ms, {}, now_ms=self.clock.now_ms()
        )

    async def admit(self) -> None:
        """The earlier life's admission."""
        demand = Demand(self.rid, 1, 100, 100, 1000, self.month)
        await self.ledger.acquire(
            "acme", a_key().id, "m", demand, scopes_of(a_tenant(), a_key(), "m")
        )

    async def settle_again(self) -> None:
        """What the shipper's news of the record lead to."""
        self.leases.settle_again(
            recorded_lease(self.record, "UTC"), actual_tokens=32, actual_cost_pico=COST_PICO
        )
        await until(lambda: not self.leases.owed)

    @property
    def state(self) -> TenantState:
        return self.ledger.states["acme"]

    def money(self) -> set[tuple[int, int]]:
        """Spent and reserved, of every scope."""
        found = self.state.months[self.month].money.values()
        return {(money.spent_pico, money.reserved_pico) for money in found}


@pytest.fixture
async def life(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[NextLife]:
    """A gateway whose loops turn at once."""
    monkeypatch.setattr(leases_module, "_RETRY_S", 0.001)
    made = NextLife()
    task = asyncio.create_task(made.leases.run())
    yield made
    task.cancel()
    await asyncio.wait([task])


@pytest.mark.parametrize("lapsed", [False, True])
async def test_a_lease_that_nobody_settled_is_settled_by_its_record(
    life: NextLife, lapsed: bool
) -> None:
    """Held still, or lapsed: what the request cost is spent, once, and nothing stays reserved."""
    await life.admit()
    if lapsed:
        life.clock.advance(TTL_MS + 1)
    for _ in range(2):
        await life.settle_again()
        assert life.money() == {(COST_PICO, 0)}
    assert life.state.scopes["tenant"].window.tokens == 32
    assert not life.state.leases
    assert not life.uncounted


async def test_a_store_that_knows_nothing_of_it_is_asked_to_be_counted_again(
    life: NextLife,
) -> None:
    """Whether the month's spend has it depends on when that was summed up: it is not added, and
    the month is named."""
    await life.settle_again()
    assert life.money() == set()
    assert life.uncounted == [("acme", life.month)]


async def test_what_ran_is_freed_and_costs_nothing(life: NextLife) -> None:
    """A request that was running when that life ended is not billed, nor is it reserved for."""
    await life.admit()
    lease = lost_lease(life.admitted)
    assert lease.scope_names == tuple(s.scope for s in scopes_of(a_tenant(), a_key(), "m"))
    await life.leases.release_lost([lease])
    await until(lambda: not life.leases.owed)
    assert life.money() == {(0, 0)}
    assert not life.state.leases
