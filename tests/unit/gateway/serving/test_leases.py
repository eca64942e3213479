import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from memory_gateway import until
from memory_ports import TTL_MS, MemoryLedger, StandingClock
from tenant_examples import a_key, a_tenant

from gateway.domain.admission import Demand, Settled, TenantState
from gateway.domain.tenant import Limits, ModelLimits
from gateway.errors import InvalidRequest, LimitReached, Overloaded
from gateway.serving import leases as leases_module
from gateway.serving.authenticate import Caller
from gateway.serving.leases import Leases
from gateway.serving.ports import HeldLease


class Holder:
    """Leases on a ledger of their own."""

    def __init__(self, tenant: Limits | None = None, key: Limits | None = None) -> None:
        self.clock = StandingClock()
        self.ledger = MemoryLedger(self.clock)
        self.leases = Leases(self.ledger, self.clock, renew_ms=1)
        self.caller = Caller(a_tenant(tenant), a_key(key))

    async def acquire(self, rid: str, tokens: int = 10, sequences: int = 1) -> HeldLease:
        demand = Demand(rid, sequences, tokens, tokens)
        lease, _ = await self.leases.acquire(self.caller, "m", demand)
        return lease

    @property
    def state(self) -> TenantState:
        return self.ledger.states["acme"]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """With the loops behind the requests."""
        task = asyncio.create_task(self.leases.run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])


@pytest.fixture(autouse=True)
def short_periods(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops turn at once."""
    monkeypatch.setattr(leases_module, "_RETRY_S", 0.001)
    monkeypatch.setattr(leases_module, "_SWEEP_PERIOD_MS", 1)


async def test_what_is_granted_is_held_until_it_is_settled() -> None:
    """The holder remembers what the store reserved, for a renewal or a settlement."""
    holder = Holder(Limits(tpm=100))
    lease = await holder.acquire("a", 60)
    assert (lease.reserved_tokens, holder.leases.held) == (60, 1)
    assert lease.second == holder.clock.now_ms() // 1000
    await holder.leases.settle(lease, actual_tokens=5, ran=True)
    assert holder.leases.held == 0
    assert holder.state.scopes["tenant"].window.tokens == 5


@pytest.mark.parametrize(
    ("tenant", "key", "kind", "words"),
    [
        (Limits(max_sequences=1), None, "sequences", "the tenant is 1 sequences at once"),
        (None, Limits(tpm=15), "tokens", "the key key-1 is 15 tokens a minute: 10 in use"),
        (Limits(rpm=1), None, "requests", "the tenant is 1 requests a minute"),
        (
            Limits(models={"m": ModelLimits(max_sequences=1)}),
            None,
            "sequences",
            "the model m is 1 sequences",
        ),
        (
            None,
            Limits(models={"m": ModelLimits(tpm=10)}),
            "tokens",
            "the key key-1 and model m is 10 tokens",
        ),
    ],
)
async def test_a_refusal_names_scope_limit_and_use(
    tenant: Limits | None, key: Limits | None, kind: str, words: str
) -> None:
    """DESIGN 2.2: the type says what, the message where and how much; R21: 429."""
    holder = Holder(tenant, key)
    await holder.acquire("a")
    with pytest.raises(LimitReached) as caught:
        await holder.acquire("b")
    error = caught.value
    assert (error.status, error.type, error.code) == (429, kind, "rate_limit_exceeded")
    assert words in error.message
    assert error.retry_after_ms is not None
    assert any(name.startswith(b"x-ratelimit-remaining-") for name, _ in error.headers)
    assert holder.leases.held == 1


async def test_what_can_never_fit_is_a_400() -> None:
    """R23: waiting would be for ever."""
    with pytest.raises(InvalidRequest, match=r"needs 60 tokens a minute.* is 50"):
        await Holder(Limits(tpm=50)).acquire("a", 60)


async def test_what_may_have_been_granted_unheard_is_settled_as_never_run() -> None:
    """R11: 503 after a second attempt; the store, which answers pings, is not given up."""
    holder = Holder()
    holder.ledger.loses_replies = True
    with pytest.raises(Overloaded) as caught:
        await holder.acquire("a")
    assert caught.value.code == "admission_unavailable"
    assert (holder.leases.reachable, holder.leases.unsettled) == (True, 1)
    assert holder.state.running("tenant") == 1
    holder.ledger.loses_replies = False
    async with holder.running():
        await until(lambda: holder.leases.unsettled == 0)
    assert holder.state.leases == {}
    assert holder.state.scopes["tenant"].window.requests == 0
    assert holder.leases.reachable


async def test_leases_are_renewed_while_they_run() -> None:
    """INV-2: a stream may last longer than a lease; once settled it is left alone."""
    holder = Holder(Limits(max_sequences=1))
    lease = await holder.acquire("a")
    async with holder.running():
        for _ in range(5):
            holder.clock.advance(TTL_MS // 2)
            seen = len(holder.ledger.renewals)
            await until(lambda seen=seen: len(holder.ledger.renewals) >= seen + 2)
        assert holder.state.running("tenant") == 1
        await holder.leases.settle(lease, actual_tokens=1, ran=True)
    assert holder.ledger.settlements[-1][-1] is Settled.LIVE


async def test_a_store_that_came_back_empty_holds_them_again() -> None:
    """DESIGN 10: re-registered by heartbeat, set and never added up."""
    holder = Holder()
    await holder.acquire("a", sequences=3)
    holder.ledger.states["acme"] = TenantState()
    async with holder.running():
        await until(lambda: holder.state.running("tenant") == 3)
        seen = len(holder.ledger.renewals)
        await until(lambda: len(holder.ledger.renewals) > seen)
    assert holder.state.running("tenant") == 3


async def test_a_settlement_is_repeated_until_it_is_taken() -> None:
    """INV-1: in the order in which they came, each counted once."""
    holder = Holder()
    leases = [await holder.acquire(name) for name in "abc"]
    holder.ledger.away = True
    for lease in leases:
        await holder.leases.settle(lease, actual_tokens=1, ran=True)
    assert (holder.leases.held, holder.leases.unsettled) == (0, 3)
    async with holder.running():
        await asyncio.sleep(0.02)
        assert holder.leases.unsettled == 3
        holder.ledger.away = False
        await until(lambda: holder.leases.unsettled == 0)
    assert [rid for rid, *_ in holder.ledger.settlements] == ["a", "b", "c"]
    assert holder.state.scopes["tenant"].window.tokens == 3


async def test_a_lost_reply_settles_once() -> None:
    """R16, M18: the repetition changes nothing."""
    holder = Holder()
    lease = await holder.acquire("a")
    holder.ledger.loses_replies = True
    await holder.leases.settle(lease, actual_tokens=7, ran=True)
    holder.ledger.loses_replies = False
    async with holder.running():
        await until(lambda: holder.leases.unsettled == 0)
    first, *again = [settled for *_, settled in holder.ledger.settlements]
    assert first is Settled.LIVE
    assert set(again) == {Settled.REPEATED}
    assert holder.state.scopes["tenant"].window.tokens == 7


async def test_what_an_earlier_life_held_is_freed() -> None:
    """R10: after a restart its sequences are free at once; its reservation stays charged."""
    holder = Holder(Limits(max_sequences=1))
    lost = await holder.acquire("a", 40)
    again = Leases(holder.ledger, holder.clock, renew_ms=1)
    await again.release_lost([lost])
    holder.leases = again
    async with holder.running():
        await until(lambda: again.unsettled == 0)
    assert holder.state.leases == {}
    assert holder.state.scopes["tenant"].window.tokens == 40


async def test_active_tenants_are_marked_and_swept() -> None:
    """C03: any gateway can find what another left behind."""
    holder = Holder()
    await holder.acquire("a")
    await holder.acquire("b")
    assert holder.ledger.marked == ["acme"]
    async with holder.running():
        await until(lambda: "acme" in holder.ledger.reaped)
    holder.clock.advance(30_000)
    await holder.acquire("c")
    assert holder.ledger.marked == ["acme", "acme"]


async def test_whether_the_store_answers_is_known() -> None:
    """/readyz says so within a sweep, and when it is back too."""
    holder = Holder()
    async with holder.running():
        holder.ledger.away = True
        await until(lambda: not holder.leases.reachable)
        holder.ledger.away = False
        await until(lambda: holder.leases.reachable)


async def test_a_look_sees_whether_there_is_room_and_holds_nothing() -> None:
    """INV-4: sequences, requests or tokens in use leave none."""
    for limits in (Limits(max_sequences=2), Limits(rpm=2), Limits(tpm=100)):
        holder = Holder(limits)

        async def has_room(sequences: int, tokens: int, holder: Holder = holder) -> bool:
            demand = Demand("b" * 32, sequences, tokens, tokens)
            return await holder.leases.has_room(holder.caller, "m", demand)

        assert await has_room(2, 100)
        await holder.acquire("a" * 32, tokens=40)
        assert await has_room(1, 60)
        await holder.acquire("c" * 32, tokens=0)
        assert await has_room(1, 61) is False
        assert sorted(holder.state.leases) == ["a" * 32, "c" * 32]
        assert holder.state.scopes["tenant"].window.tokens == 40
