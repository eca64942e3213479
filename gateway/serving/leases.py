"""The leases that this gateway holds: acquired, renewed while they run, settled exactly once.

A settlement that the store does not take at once is repeated until it does: the lease is not
renewed meanwhile, so it is free after its time to live in any case.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable

from gateway.domain.admission import Demand, Granted, Refused, refused_at_sight
from gateway.domain.scopes import ScopeUse, scopes_of
from gateway.errors import InvalidRequest, LimitReached, Overloaded
from gateway.serving.authenticate import Caller
from gateway.serving.limit_headers import limit_headers
from gateway.serving.ports import Clock, HeldLease, Ledger, LedgerUnavailable
from gateway.telemetry import metrics
from gateway.telemetry.logs import log_failure

_MARK_AGAIN_MS = 30_000
_SWEEP_IDLE_MS = 180_000
_SWEEP_PERIOD_MS = 2_000
_RETRY_S = 0.25
_RENEWED_AT_ONCE = 32
"""Tenants whose leases are renewed side by side; the rest keep the ledger's connections."""
_GIVE_UP_MS = 3_600_000
"""The store forgets a lapsed lease after so long: a settlement cannot change anything then."""
_log = logging.getLogger(__name__)


class Leases:
    """Acquires, keeps and settles leases on a Ledger."""

    def __init__(self, ledger: Ledger, clock: Clock, *, renew_ms: int) -> None:
        self._ledger = ledger
        self._clock = clock
        self._renew_s = renew_ms / 1000
        self._held: dict[str, HeldLease] = {}
        self._unsettled: dict[str, tuple[HeldLease, int, bool, int]] = {}
        self._marked_ms: dict[str, int] = {}
        self.reachable = True
        """Whether the store answered last time."""

    @property
    def held(self) -> int:
        """Leases that this gateway holds."""
        return len(self._held)

    @property
    def unsettled(self) -> int:
        """Settlements that the store has not taken yet."""
        return len(self._unsettled)

    async def acquire(
        self, caller: Caller, model: str, demand: Demand
    ) -> tuple[HeldLease, tuple[ScopeUse, ...]]:
        """Hold a lease and a reservation for one request.

        Raises LimitReached (429), InvalidRequest where the demand exceeds the limit itself (400),
        Overloaded(admission_unavailable) where the store does not decide in time.
        """
        tenant_id, key_id = caller.tenant.id, caller.key.id
        scopes = scopes_of(caller.tenant, caller.key, model)
        names = tuple(scope.scope for scope in scopes)
        lease = HeldLease(
            demand.request_id, tenant_id, key_id, model, demand.sequences, demand.tokens, 0, names
        )
        try:
            await self._mark(tenant_id)
            decision = await self._ledger.acquire(tenant_id, key_id, model, demand, scopes)
        except LedgerUnavailable as error:
            self.reachable = False
            self._settle_later(lease, 0, ran=False)
            raise Overloaded(
                "limits cannot be checked at the moment", code="admission_unavailable"
            ) from error
        self.reachable = True
        if not isinstance(decision, Granted | Refused):
            raise Overloaded("limits cannot be checked at the moment", code="admission_unavailable")
        if isinstance(decision, Refused):
            metrics.REFUSALS.labels(kind=decision.kind.value).inc()
            raise _refusal(decision)
        return self._hold(lease, decision), decision.uses

    async def look(self, caller: Caller, model: str, *, sequences: int, fewest_tokens: int) -> None:
        """Refuse early what has no room now, before it costs anything to anybody.

        Raises as `acquire` does; what passes holds nothing.
        """
        scopes = scopes_of(caller.tenant, caller.key, model)
        try:
            uses = await self._ledger.observe(caller.tenant.id, scopes)
        except LedgerUnavailable as error:
            self.reachable = False
            raise Overloaded(
                "limits cannot be checked at the moment", code="admission_unavailable"
            ) from error
        refused = refused_at_sight(uses, sequences=sequences, fewest_tokens=fewest_tokens)
        if refused is not None:
            metrics.REFUSALS.labels(kind=refused.kind.value).inc()
            raise _refusal(refused)

    def _hold(self, lease: HeldLease, granted: Granted) -> HeldLease:
        held = HeldLease(
            lease.request_id, lease.tenant_id, lease.key_id, lease.model, lease.sequences,
            granted.reserved_tokens, granted.second, lease.scope_names,
        )  # fmt: skip
        self._held[held.request_id] = held
        return held

    async def settle(self, lease: HeldLease, *, actual_tokens: int, ran: bool) -> None:
        """End a lease, now or as soon as the store can be reached. Does not raise."""
        self._held.pop(lease.request_id, None)
        try:
            await self._ledger.settle(lease, actual_tokens=actual_tokens, ran=ran)
            self.reachable = True
        except LedgerUnavailable:
            self.reachable = False
            self._settle_later(lease, actual_tokens, ran=ran)

    def _settle_later(self, lease: HeldLease, actual_tokens: int, *, ran: bool) -> None:
        since_ms = self._clock.now_ms()
        self._unsettled[lease.request_id] = (lease, actual_tokens, ran, since_ms)

    async def release_lost(self, leases: list[HeldLease]) -> None:
        """Free what an earlier life of this gateway held; its reservations stay charged."""
        for lease in leases:
            self._settle_later(lease, lease.reserved_tokens, ran=True)

    async def _mark(self, tenant_id: str) -> None:
        now_ms = self._clock.now_ms()
        if now_ms - self._marked_ms.get(tenant_id, 0) >= _MARK_AGAIN_MS:
            await self._ledger.mark_active([tenant_id], now_ms=now_ms)
            self._marked_ms[tenant_id] = now_ms

    async def run(self) -> None:
        """Renew, settle what is left, reap what others left behind; for ever."""
        await asyncio.gather(
            *(
                _kept_going(loop)
                for loop in (self._renew_forever, self._settle_forever, self._sweep_forever)
            )
        )

    async def _renew_forever(self) -> None:
        while True:
            await asyncio.sleep(self._renew_s)
            by_tenant: dict[str, list[HeldLease]] = defaultdict(list)
            for lease in self._held.values():
                by_tenant[lease.tenant_id].append(lease)
            tenants = list(by_tenant.items())
            for start in range(0, len(tenants), _RENEWED_AT_ONCE):
                batch = tenants[start : start + _RENEWED_AT_ONCE]
                await asyncio.gather(*(self._renew(*tenant) for tenant in batch))

    async def _renew(self, tenant_id: str, leases: list[HeldLease]) -> None:
        try:
            await self._mark(tenant_id)
            counts = await self._ledger.renew(tenant_id, leases)
        except LedgerUnavailable:
            self.reachable = False
            return
        self.reachable = True
        retaken = counts.resumed + counts.recreated
        if retaken:
            metrics.LEASES_RETAKEN.inc(retaken)
            _log.warning("%d leases had lapsed or were lost and are held again", retaken)

    async def _settle_forever(self) -> None:
        while True:
            await asyncio.sleep(_RETRY_S)
            for rid, (lease, actual, ran, since_ms) in list(self._unsettled.items()):
                try:
                    await self._ledger.settle(lease, actual_tokens=actual, ran=ran)
                    self.reachable = True
                except LedgerUnavailable:
                    self.reachable = False
                    if self._clock.now_ms() - since_ms < _GIVE_UP_MS:
                        break
                self._unsettled.pop(rid, None)

    async def _sweep_forever(self) -> None:
        while True:
            await asyncio.sleep(_SWEEP_PERIOD_MS / 1000)
            try:
                await self._ledger.sweep(
                    now_ms=self._clock.now_ms(),
                    idle_ms=_SWEEP_IDLE_MS,
                    period_ms=_SWEEP_PERIOD_MS,
                )
                self.reachable = True
            except LedgerUnavailable:
                self.reachable = False


async def _kept_going(loop: Callable[[], Awaitable[None]]) -> None:
    """Run a loop for ever: a bug in one pass must not end the renewal of every lease."""
    while True:
        try:
            await loop()
        except Exception as error:  # noqa: BLE001 - logged, and the next pass starts
            log_failure(_log, error, "a pass over the leases failed")
            await asyncio.sleep(_RETRY_S)


def _refusal(refused: Refused) -> InvalidRequest | LimitReached:
    shown = refused.limits.shown
    unit = {
        "sequences": "sequences at once",
        "tokens": "tokens a minute",
        "requests": "requests a minute",
    }[refused.kind.value]
    refusal: InvalidRequest | LimitReached
    if refused.retry_after_ms is None:
        refusal = InvalidRequest(
            f"this request needs {refused.need} {unit}; the limit of the {shown} is "
            f"{refused.limit}, so it can never be admitted"
        )
    else:
        refusal = LimitReached(
            f"the limit of the {shown} is {refused.limit} {unit}: {refused.used} in use, "
            f"this request needs {refused.need}",
            kind=refused.kind.value,
            retry_after_ms=refused.retry_after_ms,
        )
    refusal.headers = tuple(limit_headers(refused.uses))
    return refusal
