"""One decision of admission: by the store, a second time where only one reply came late, or by a
share that is held while the store is away."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace

from gateway.domain.admission import Granted, MoneyUnknown, Paused, Refused
from gateway.domain.held_share import Asked
from gateway.domain.scopes import ScopeUse
from gateway.errors import Overloaded, WeirError
from gateway.serving.held_leases import HeldLeases
from gateway.serving.month_now import MonthNow
from gateway.serving.ports import Clock, HeldLease, Ledger, LedgerUnavailable, MonthRebuild
from gateway.serving.refusals import refusal
from gateway.serving.settlements import Holding, Settlement, Settlements
from gateway.serving.store_watch import StoreAway, StoreWatch
from gateway.telemetry import metrics
from gateway.telemetry.admission import Decided, deciding

_REBUILD_S = 1.0
"""A request waits so long for the month's spend to be known again."""
Reply = Granted | Refused | Paused | MoneyUnknown


class Decisions:
    """Decides what `Leases.acquire` is asked. `on_paused` is called where the store was found
    empty: it is to be told soon what runs here."""

    def __init__(
        self,
        ledger: Ledger,
        watch: StoreWatch,
        held: HeldLeases,
        settlements: Settlements,
        clock: Clock,
        *,
        months: MonthRebuild | None,
        on_paused: Callable[[], None],
    ) -> None:
        self._ledger = ledger
        self._watch = watch
        self._held = held
        self._settlements = settlements
        self._clock = clock
        self._months = months
        self._on_paused = on_paused
        self._paused_until_us = 0

    @property
    def paused(self) -> bool:
        """Whether the store came back empty and some tenants wait until it knows enough."""
        return self._clock.monotonic_us() < self._paused_until_us

    async def decide(self, asked: Asked, month: MonthNow) -> tuple[HeldLease, tuple[ScopeUse, ...]]:
        """The lease, and the use of its scopes where the store told it. Raises as
        `Leases.acquire` does."""
        with deciding() as decided:
            try:
                reply, asked_us = await self._by_store(asked, decided)
            except LedgerUnavailable as error:
                lease = self._by_share(asked)
                if lease is None:
                    decided.mode = "none"
                    raise unavailable() from error
                decided.mode, decided.result = "held_share", "granted"
                return lease, ()
            if isinstance(reply, Granted):
                decided.result = "granted"
                return self._hold(asked, reply, asked_us), reply.uses
            if isinstance(reply, Paused):
                self._held.forget_marks(asked.tenant_id)
            raise self._no(asked, reply, decided, month)

    async def _by_store(self, asked: Asked, decided: Decided) -> tuple[Reply, int]:
        """The reply, and when it was asked on the monotonic clock. Raises LedgerUnavailable."""
        if not await self._watch.until_open():
            raise LedgerUnavailable(StoreAway)
        decided.mode = "store"
        await self._held.mark(asked.tenant_id)
        asked_us = self._clock.monotonic_us()
        reply = await self._ask(asked)
        if isinstance(reply, MoneyUnknown) and await self._known(asked, reply.month):
            asked_us = self._clock.monotonic_us()
            reply = await self._ask(asked)
        return reply, asked_us

    async def _ask(self, asked: Asked) -> Reply:
        """Asked a second time where the store answers a ping: only that reply came too late, and
        repeating it is safe. What may have been granted unheard is settled as never run."""

        def call() -> Awaitable[Reply]:
            tenant_id, key_id, model = asked.subject
            return self._ledger.acquire(tenant_id, key_id, model, asked.demand, asked.limits)

        try:
            return await self._watch.ask(call)
        except LedgerUnavailable as error:
            if error.reason is StoreAway:
                raise
            if await self._watch.lives():
                with suppress(LedgerUnavailable):
                    return await self._watch.ask(call)
            unheard = Settlement(
                _lease_of(asked), 0, ran=False, since_ms=self._clock.now_ms(), attempted=True
            )
            self._settlements.keep(unheard)
            raise

    def _hold(self, asked: Asked, granted: Granted, asked_us: int) -> HeldLease:
        lease = replace(
            _lease_of(asked), reserved_tokens=granted.reserved_tokens, second=granted.second
        )
        limits = tuple(use.limits for use in granted.uses)
        self._held.add(Holding(lease, limits, granted.now_ms, asked_us))
        return lease

    def _by_share(self, asked: Asked) -> HeldLease | None:
        """A lease whose request ended while the store is away, for this one to run under."""
        ended = self._settlements.share_for(asked)
        if ended is None or ended.holding is None or self._held.may_be_over(asked.tenant_id):
            return None
        self._settlements.take_back(ended)
        lease = replace(
            ended.lease,
            carried=True,
            base_tokens=ended.lease.base_tokens + ended.actual_tokens,
            base_cost_pico=ended.lease.base_cost_pico + ended.actual_cost_pico,
        )
        self._held.add(replace(ended.holding, lease=lease, ran=ended.ran))
        return lease

    def _no(self, asked: Asked, reply: Reply, decided: Decided, month: MonthNow) -> WeirError:
        if isinstance(reply, Refused):
            decided.result = reply.kind.value
            metrics.REFUSALS.labels(kind=reply.kind.value).inc()
            return refusal(reply, month, is_least=asked.is_least)
        if isinstance(reply, Paused):
            decided.result = "paused"
            wait_ms = max(1, reply.until_ms - reply.now_ms)
            until_us = self._clock.monotonic_us() + wait_ms * 1000
            self._paused_until_us = max(self._paused_until_us, until_us)
            self._on_paused()
            return unavailable("what is in use of the limits is not known yet", wait_ms)
        decided.result = "money_unknown"
        return unavailable("what the month has cost is not known yet")

    async def _known(self, asked: Asked, month: str) -> bool:
        if self._months is None:
            return False
        try:
            async with asyncio.timeout(_REBUILD_S):
                return await self._months.rebuild(asked.tenant_id, month)
        except TimeoutError:
            return False


def unavailable(
    why: str = "limits cannot be checked at the moment", retry_after_ms: int = 1_000
) -> Overloaded:
    """The 503 of a decision that cannot be made now."""
    return Overloaded(why, code="admission_unavailable", retry_after_ms=retry_after_ms)


def _lease_of(asked: Asked) -> HeldLease:
    """As it is before the store has said what it reserves."""
    demand = asked.demand
    return HeldLease(
        request_id=demand.request_id,
        tenant_id=asked.tenant_id,
        key_id=asked.key_id,
        model=asked.model,
        sequences=demand.sequences,
        reserved_tokens=demand.tokens,
        second=0,
        scope_names=tuple(scope.scope for scope in asked.limits),
        cost_pico=demand.cost_pico,
        month=demand.month,
    )
