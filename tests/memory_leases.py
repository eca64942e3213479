"""Leases on a ledger in memory that a test takes away and brings back."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from memory_gateway import until
from memory_ports import TTL_MS, MemoryLedger, StandingClock
from prometheus_client import REGISTRY
from tenant_examples import a_key, a_tenant

from gateway.domain.admission import Demand, TenantState
from gateway.domain.tenant import Limits
from gateway.errors import Overloaded
from gateway.serving import leases, store_watch
from gateway.serving.authenticate import Caller
from gateway.serving.leases import Leases
from gateway.serving.ports import HeldLease

LIMITS = Limits(max_sequences=2, tpm=200)


class Months:
    """Knows each month from the second time on."""

    def __init__(self, holder: "Holder", *, in_time: bool = True) -> None:
        self.holder = holder
        self.in_time = in_time
        self.asked: list[tuple[str, str]] = []

    async def rebuild(self, tenant_id: str, month: str) -> bool:
        self.asked.append((tenant_id, month))
        if not self.in_time:
            await asyncio.sleep(60)
        self.holder.replies = []
        return True


class Holder:
    """Leases on a ledger in memory; `replies` come before what the ledger would say."""

    def __init__(self, limits: Limits = LIMITS, *, months_in_time: bool = True) -> None:
        self.clock = StandingClock()
        self.ledger = MemoryLedger(self.clock)
        self.months = Months(self, in_time=months_in_time)
        self.leases = Leases(
            self.ledger, self.clock, renew_ms=1, ttl_ms=TTL_MS, timeout_ms=50, months=self.months
        )
        self.caller = Caller(a_tenant(limits), a_key())
        self.replies: list[object] = []
        by_ledger = self.ledger.acquire

        async def acquire(*asked: Any) -> Any:
            return self.replies[0] if self.replies else await by_ledger(*asked)

        self.ledger.acquire = acquire  # type: ignore[method-assign,assignment]

    async def ask(
        self, rid: str, tokens: int = 60, *, sequences: int = 1, bounded: bool = True
    ) -> HeldLease:
        demand = Demand(rid, sequences, tokens, tokens, month="2026-11")
        lease, _ = await self.leases.acquire(self.caller, "m", demand, is_bounded=bounded)
        return lease

    async def refused(self, rid: str, **asked: Any) -> Overloaded:
        with pytest.raises(Overloaded) as caught:
            await self.ask(rid, **asked)
        assert caught.value.code == "admission_unavailable"
        return caught.value

    async def lose(self) -> None:
        self.ledger.away = True
        assert not await self.leases.watch.lives()

    async def end(self, lease: HeldLease, used: int, *, ran: bool = True, cost: int = 0) -> None:
        await self.leases.settle(lease, actual_tokens=used, ran=ran, actual_cost_pico=cost)

    @property
    def state(self) -> TenantState:
        return self.ledger.states["acme"]

    @property
    def tokens(self) -> int:
        return self.state.scopes["tenant"].window.tokens

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.leases.run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])

    async def healed(self) -> None:
        self.ledger.away = False
        async with self.running():
            await until(lambda: self.leases.reachable and not self.leases.unsettled)


def shorten_periods(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops turn at once."""
    monkeypatch.setattr(leases, "_RETRY_S", 0.001)
    monkeypatch.setattr(leases, "_SWEEP_PERIOD_MS", 1)
    monkeypatch.setattr(leases, "_RENEWALS_APART_S", 0.001)
    monkeypatch.setattr(store_watch, "PING_PERIOD_S", 0.001)
    monkeypatch.setattr(store_watch, "REGULAR_PING_S", 0.001)


def counted(name: str, **labels: str) -> float:
    """A metric's value now."""
    return REGISTRY.get_sample_value(name, labels) or 0.0
