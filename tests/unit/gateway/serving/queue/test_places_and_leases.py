"""The two atomic steps together: a place of the pool, then leases of a tenant on a real ledger."""

import asyncio
from typing import Any

import pytest
from memory_pool_queue import MemoryStore
from memory_ports import TTL_MS, MemoryLedger
from tenant_examples import a_key, a_tenant
from virtual_time import virtually
from waiting_rooms import WaitingRoom, asked, settle

from gateway.domain.admission import Demand
from gateway.domain.tenant import Limits, waiting_of
from gateway.errors import InvalidRequest, LimitReached
from gateway.serving.authenticate import Caller
from gateway.serving.leases import Leases
from gateway.serving.ports import HeldLease
from gateway.serving.queue.scopes import LeaseSight


class LeaseScopes(LeaseSight):
    """The second step, as the straight line takes it."""

    def __init__(self, leases: Leases, caller: Caller, demand: Demand) -> None:
        super().__init__(leases, caller, "m", demand)
        self._asks = (leases, caller, demand)

    async def admit(self) -> HeldLease:
        leases, caller, demand = self._asks
        lease, _ = await leases.acquire(caller, "m", demand, is_bounded=True)
        return lease


class Served:
    """A gateway that serves requests of one tenant, and when each was."""

    def __init__(self, store: MemoryStore, limits: Limits) -> None:
        self.room = WaitingRoom(store)
        self.ledger = MemoryLedger(store.clock)  # type: ignore[arg-type]
        self.leases = Leases(
            self.ledger, store.clock, renew_ms=2_500, ttl_ms=TTL_MS, timeout_ms=100
        )
        self.caller = Caller(a_tenant(limits), a_key())
        self.admitted_s: dict[str, float] = {}
        self.limits = limits

    def ask(self, request_id: str, tokens: int, runs_s: float, **asks: Any) -> "asyncio.Task[None]":
        return self.room.start(self._serve(request_id, tokens, runs_s, asks))

    async def _serve(
        self, request_id: str, tokens: int, runs_s: float, asks: dict[str, Any]
    ) -> None:
        waiting = waiting_of(self.limits)
        asks = {"wait_ms": waiting.max_wait_ms, "max_queued": waiting.max_queued, **asks}
        scopes = LeaseScopes(self.leases, self.caller, Demand(request_id, 1, tokens, tokens))
        place, lease = await self.room.places.admit(asked(request_id, **asks), scopes)
        self.admitted_s[request_id] = round(asyncio.get_running_loop().time(), 2)
        place.began()
        await asyncio.sleep(runs_s)
        await self.leases.settle(lease, actual_tokens=tokens, ran=True)
        self.room.places.settled("acme")
        await place.end(150)


@virtually
async def test_a_limit_of_one_and_a_call_of_three_seconds() -> None:
    """Q01: the second call is served after 3 s, and one that waits for too long gets a 429 with a
    retry-after."""
    store = MemoryStore()
    store.room("w", 8)
    served = Served(store, Limits(max_sequences=1, max_wait_ms=10_000))
    async with served.room.open() as room:
        room.start(served.leases.run())
        first = served.ask("a", 10, 3)
        await settle()
        second = served.ask("b", 10, 20)
        await asyncio.gather(first)
        third = served.ask("c", 10, 1)
        with pytest.raises(LimitReached) as refused:
            await third
        assert (refused.value.status, refused.value.type) == (429, "sequences")
        assert refused.value.retry_after_ms == 1_000
        assert asyncio.get_running_loop().time() == pytest.approx(13, abs=0.01)
        await second
        assert served.admitted_s == {"a": 0, "b": pytest.approx(3, abs=0.05)}
        await settle()
    assert store.is_at_rest
    assert not served.ledger.states["acme"].leases


@virtually
async def test_tokens_a_minute_are_waited_for_until_enough_have_aged() -> None:
    """With a wait of more than a minute; without one the 429 is told at once."""
    store = MemoryStore()
    store.room("w", 8)
    served = Served(store, Limits(tpm=100, max_wait_ms=70_000))
    async with served.room.open() as room:
        room.start(served.leases.run())
        await served.ask("a", 80, 0.5)
        began_s = asyncio.get_running_loop().time()
        with pytest.raises(LimitReached) as refused:
            await served.ask("b", 60, 1, max_queued=0)
        assert refused.value.type == "tokens"
        assert refused.value.retry_after_ms is not None
        await served.ask("c", 60, 1)
        waited_s = served.admitted_s["c"] - began_s
        assert waited_s == pytest.approx(refused.value.retry_after_ms / 1000, abs=0.02)
        assert 59 < waited_s < 61
        await settle()
    assert store.is_at_rest


@virtually
async def test_what_exceeds_a_limit_itself_is_never_parked() -> None:
    store = MemoryStore()
    store.room("w", 8)
    served = Served(store, Limits(tpm=100))
    async with served.room.open():
        with pytest.raises(InvalidRequest):
            await served.ask("a", 101, 1)
        await settle()
        assert asyncio.get_running_loop().time() == 0
    assert store.is_at_rest


@virtually
async def test_both_stores_away_and_back() -> None:
    """Interactive is told 503 by the ledger, which has no share to give; batch waits."""
    store = MemoryStore()
    store.room("w", 8)
    served = Served(store, Limits(max_sequences=4, max_wait_ms=10_000))
    async with served.room.open() as room:
        room.start(served.leases.run())
        store.away = served.ledger.away = True
        while room.watch.is_open or served.leases.reachable:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.6)
        began_s = asyncio.get_running_loop().time()
        outcome = (await asyncio.gather(served.ask("a", 10, 1), return_exceptions=True))[0]
        assert getattr(outcome, "code", None) == "admission_unavailable"
        assert asyncio.get_running_loop().time() - began_s < 0.1
        store.away = served.ledger.away = False
        await asyncio.sleep(0.5)
        await served.ask("b", 10, 1)
        await settle()
    assert store.is_at_rest
