"""The leases that this gateway holds: acquired, renewed while they run, settled exactly once.

While the store of leases is away (`store_watch`) a request may only run in the place of one that
ended meanwhile (`gateway.domain.held_share`); everything else is refused at once. Settlements are
withheld then. When it is back it is told first what runs here, then what has ended; then it decides
again.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from gateway.domain.admission import Demand, has_room_at_sight
from gateway.domain.held_share import Asked
from gateway.domain.scopes import ScopeUse, scopes_of
from gateway.serving.authenticate import Caller
from gateway.serving.decisions import Decisions, unavailable
from gateway.serving.held_leases import HeldLeases
from gateway.serving.month_now import month_now
from gateway.serving.ports import Clock, HeldLease, Ledger, LedgerUnavailable, MonthRebuild
from gateway.serving.settlements import Settlement, Settlements
from gateway.serving.store_watch import StoreWatch
from gateway.serving.sweeping import Sweeper
from gateway.telemetry.logs import log_failure

_SWEEP_PERIOD_MS = 2_000
_RETRY_S = 0.25
_RENEWALS_APART_S = 0.1
"""At least, however often something asks for one."""
_log = logging.getLogger(__name__)


class Leases:
    """Acquires, keeps and settles leases on a Ledger.

    `ttl_ms` is the ledger's own; `timeout_ms` bounds a decision.
    """

    def __init__(
        self,
        ledger: Ledger,
        clock: Clock,
        *,
        renew_ms: int,
        ttl_ms: int = 10_000,
        timeout_ms: int = 100,
        months: MonthRebuild | None = None,
        on_uncounted: Callable[[str, str], None] = lambda tenant_id, month: None,
    ) -> None:
        self._ledger = ledger
        self._clock = clock
        self.uncounted = on_uncounted
        self._renew_s = renew_ms / 1000
        self._renew_now = asyncio.Event()
        self.watch = StoreWatch(
            ledger.ping,
            timeout_ms=timeout_ms,
            on_return=self._tell_all,
            on_broken=self._broken,
        )
        self._held = HeldLeases(ledger, self.watch, clock)
        self._sweeper = Sweeper(ledger, self.watch, clock)
        self._settlements = Settlements(
            ledger, self.watch, clock, ttl_ms=ttl_ms, on_uncounted=on_uncounted
        )
        self._decisions = Decisions(
            ledger,
            self.watch,
            self._held,
            self._settlements,
            clock,
            months=months,
            on_paused=self._renew_now.set,
        )

    @property
    def held(self) -> int:
        """Leases that this gateway holds."""
        return len(self._held)

    @property
    def unsettled(self) -> int:
        """Settlements that the store has not taken yet."""
        return len(self._settlements)

    @property
    def owed(self) -> frozenset[str]:
        """Requests whose settlements those are."""
        return self._settlements.ids

    @property
    def withheld(self) -> int:
        """Settlements that were not sent, because the store is away."""
        return self._settlements.withheld

    @property
    def excess(self) -> int:
        """Sequences over a limit, since leases that had lapsed or were lost are held again."""
        return self._held.excess

    @property
    def reachable(self) -> bool:
        """Whether the store decides."""
        return self.watch.is_open

    @property
    def paused(self) -> bool:
        """Whether the store came back empty and some tenants wait until it knows enough."""
        return self._decisions.paused

    async def acquire(
        self,
        caller: Caller,
        model: str,
        demand: Demand,
        *,
        is_bounded: bool = False,
        is_least: bool = False,
    ) -> tuple[HeldLease, tuple[ScopeUse, ...]]:
        """Hold a lease and a reservation for one request. `is_bounded`: its demand is the most that
        it can use, since the client set a maximum; `is_least`: it may need more, which a refusal
        says. Without the store no use is known.

        Raises LimitReached, QuotaExceeded (429), InvalidRequest where the demand exceeds the limit
        itself (400), Overloaded(admission_unavailable) where nothing is decided in time.
        """
        scopes = scopes_of(caller.tenant, caller.key, model)
        asked = Asked(caller.tenant.id, caller.key.id, model, demand, is_bounded, scopes, is_least)
        month = month_now(caller.tenant, self._clock.now_ms())
        return await self._decisions.decide(asked, month)

    async def has_room(self, caller: Caller, model: str, demand: Demand) -> bool:
        """Whether there was room for a demand a moment ago. Holds nothing and decides nothing.

        Raises Overloaded(admission_unavailable) where the store is away and no share is free.
        """
        scopes = scopes_of(caller.tenant, caller.key, model)
        try:
            uses = await self.watch.ask(lambda: self._ledger.observe(caller.tenant.id, scopes))
        except LedgerUnavailable as error:
            asked = Asked(caller.tenant.id, caller.key.id, model, demand, True, scopes)
            if self._settlements.share_for(asked) is None:
                raise unavailable() from error
            return True
        return has_room_at_sight(uses, demand)

    async def settle(
        self, lease: HeldLease, *, actual_tokens: int, ran: bool, actual_cost_pico: int = 0
    ) -> None:
        """End a lease, now or as soon as the store can be reached. Does not raise."""
        holding = self._held.take(lease)
        settlement = Settlement(
            lease=lease if holding is None else holding.lease,
            actual_tokens=actual_tokens,
            ran=ran or (holding is not None and holding.ran),
            actual_cost_pico=actual_cost_pico,
            since_ms=self._clock.now_ms(),
            holding=holding,
        )
        self._settlements.keep(settlement)
        if not await self.watch.until_judged() or await self._settlements.send(settlement):
            return
        if await self.watch.lives():
            await self._settlements.send(settlement)

    async def release_lost(self, leases: Sequence[HeldLease]) -> None:
        """Free what an earlier life of this gateway held; its reservations stay charged."""
        for lease in leases:
            self._settlements.keep(
                Settlement(
                    lease=lease,
                    actual_tokens=lease.reserved_tokens,
                    ran=True,
                    actual_cost_pico=lease.cost_pico,
                    since_ms=self._clock.now_ms(),
                )
            )

    def settle_again(self, lease: HeldLease, *, actual_tokens: int, actual_cost_pico: int) -> None:
        """Settle what an earlier life of this gateway recorded and may not have settled. Harmless
        where it had."""
        self._settlements.keep(
            Settlement(
                lease=lease,
                actual_tokens=actual_tokens,
                ran=True,
                actual_cost_pico=actual_cost_pico,
                since_ms=self._clock.now_ms(),
                attempted=True,
            )
        )

    async def run(self) -> None:
        """Renew, settle what is left, reap what others left behind; for ever."""
        loops = (self._renew_forever, self._settle_forever, self._sweep_forever, self.watch.run)
        await asyncio.gather(*(_kept_going(loop) for loop in loops))

    def _broken(self) -> None:
        self._held.forget_marks()
        self._renew_now.set()

    async def _tell_all(self) -> None:
        self._held.forget_marks()
        await self._held.renew_all()
        await self._settlements.send_all()
        while self._settlements.withheld:
            await self._settlements.send_all()

    async def _renew_forever(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._renew_s):
                    await self._renew_now.wait()
            self._renew_now.clear()
            if self.watch.is_open:
                with suppress(LedgerUnavailable):
                    await self._held.renew_all()
            await asyncio.sleep(min(self._renew_s, _RENEWALS_APART_S))

    async def _settle_forever(self) -> None:
        while True:
            await asyncio.sleep(_RETRY_S)
            if self.watch.is_open:
                with suppress(LedgerUnavailable):
                    await self._settlements.send_all()

    async def _sweep_forever(self) -> None:
        while True:
            await asyncio.sleep(_SWEEP_PERIOD_MS / 1000)
            with suppress(LedgerUnavailable):
                await self._sweeper.sweep(period_ms=_SWEEP_PERIOD_MS)


async def _kept_going(loop: Callable[[], Awaitable[None]]) -> None:
    """Run a loop for ever: a bug in one pass must not end it, or any other."""
    while True:
        try:
            await loop()
        except Exception as error:  # noqa: BLE001 - logged, and the next pass starts
            log_failure(_log, error, "a pass over the leases failed")
            await asyncio.sleep(_RETRY_S)
