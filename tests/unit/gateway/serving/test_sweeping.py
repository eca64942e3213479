"""The sweep, over however many tenants: one gateway at a time, in batches, past what is away."""

import asyncio

import pytest
from memory_ports import TTL_MS, MemoryLedger, StandingClock

from gateway.domain.admission import Demand, Granted
from gateway.domain.scopes import ScopeLimits
from gateway.serving import sweeping
from gateway.serving.ports import LedgerUnavailable
from gateway.serving.store_watch import StoreWatch
from gateway.serving.sweeping import Sweeper

NAMES = ("tenant", "key:k", "model:m", "key:k/model:m")
SCOPES = [ScopeLimits(name, 1, 1, None, None) for name in NAMES]
PERIOD_MS = 7


class Swept:
    """A ledger with tenants, and who sweeps it."""

    def __init__(self, tenants: int) -> None:
        self.clock = StandingClock()
        self.ledger = MemoryLedger(self.clock)
        self.ledger.page = 40
        self.ledger.marked = [f"t{n}" for n in range(tenants)]
        self.watch = StoreWatch(self.ledger.ping, timeout_ms=100, on_return=self._told)
        self.sweeper = Sweeper(self.ledger, self.watch, self.clock)

    async def _told(self) -> None:
        pass

    async def sweep(self) -> None:
        await self.sweeper.sweep(period_ms=PERIOD_MS)

    async def hold(self, tenant: str) -> None:
        demand = Demand("a", 1, 1, 1)
        assert isinstance(await self.ledger.acquire(tenant, "k", "m", demand, SCOPES), Granted)


async def test_every_tenant_is_swept_and_who_rests_is_taken_out() -> None:
    """C03: what nobody renewed lapses; who holds something stays, and so does who was marked since
    a gateway may rely on it."""
    swept = Swept(100)
    await swept.hold("t0")
    swept.clock.advance(TTL_MS)
    await swept.hold("t99")
    await swept.sweep()
    assert swept.ledger.reaped == [f"t{n}" for n in range(100)]
    assert swept.ledger.states["t0"].leases == {}
    out = [name for names, _ in swept.ledger.taken_out for name in names]
    assert out == [f"t{n}" for n in range(99)]
    before = {before_ms for _, before_ms in swept.ledger.taken_out}
    assert before == {swept.clock.now_ms() - sweeping.IDLE_MS}


async def test_the_turn_is_kept_while_a_sweep_runs() -> None:
    """However long it takes: claimed again after each batch, and at its end for the period."""
    swept = Swept(100)
    await swept.sweep()
    *during, last = swept.ledger.claims
    assert len(during) >= 100 / sweeping.AT_ONCE
    assert (set(during), last) == ({sweeping.TURN_MS}, PERIOD_MS)


async def test_who_lost_the_turn_stops() -> None:
    """Another gateway is at it: two sweeps beside each other find nothing that one does not."""
    swept = Swept(100)
    swept.ledger.sweep_turn = "another"
    await swept.sweep()
    assert swept.ledger.reaped == []
    swept.ledger.sweep_turn = None
    reap = swept.ledger.reap

    async def lose(tenant_id: str) -> tuple[int, int]:
        swept.ledger.sweep_turn = "another"
        return await reap(tenant_id)

    swept.ledger.reap = lose  # type: ignore[method-assign]
    await swept.sweep()
    assert len(swept.ledger.reaped) == sweeping.AT_ONCE


async def test_the_loop_goes_on_between_batches() -> None:
    """Never more than a batch is asked at once, and others have their turn between two."""
    swept = Swept(100)
    running = most = 0
    reap = swept.ledger.reap

    async def counted(tenant_id: str) -> tuple[int, int]:
        nonlocal running, most
        running += 1
        most = max(most, running)
        try:
            return await reap(tenant_id)
        finally:
            running -= 1

    swept.ledger.reap = counted  # type: ignore[method-assign]
    await swept.sweep()
    assert most <= sweeping.AT_ONCE


async def test_a_shard_that_is_away_ends_no_sweep() -> None:
    """Its tenants are passed over, and are not taken for at rest."""
    swept = Swept(100)
    swept.ledger.shard_away = {f"t{n}" for n in range(0, 100, 3)}
    await swept.sweep()
    assert set(swept.ledger.reaped) == set(swept.ledger.marked) - swept.ledger.shard_away
    out = {name for names, _ in swept.ledger.taken_out for name in names}
    assert not out & swept.ledger.shard_away


async def test_a_store_that_is_away_ends_it() -> None:
    """Everything would take its time-out."""
    swept = Swept(100)

    async def away(tenant_id: str) -> tuple[int, int]:
        swept.ledger.away = True
        await asyncio.sleep(0)
        raise LedgerUnavailable(TimeoutError)

    swept.ledger.reap = away  # type: ignore[method-assign]
    with pytest.raises(LedgerUnavailable):
        await swept.sweep()
    assert len(swept.ledger.claims) == 1
