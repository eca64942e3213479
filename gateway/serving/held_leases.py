"""The leases of requests that run here: renewed while they do, held again after a loss.

What others were granted meanwhile and what is held again may pass a limit together (INV-2): the
excess is looked at, counted and shown until it is gone.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from gateway.domain.admission import Renewed
from gateway.domain.scopes import ScopeLimits
from gateway.serving.ports import Clock, HeldLease, Ledger, LedgerUnavailable
from gateway.serving.settlements import Holding
from gateway.serving.store_watch import StoreWatch
from gateway.telemetry import admission as metrics
from gateway.telemetry.logs import log_failure
from gateway.telemetry.metrics import LEASES_RETAKEN

_MARK_AGAIN_MS = 30_000
_MARK_FAILED_MS = 1_000
_RENEWED_AT_ONCE = 32
"""Tenants whose leases are renewed side by side; the rest keep the ledger's connections."""
_log = logging.getLogger(__name__)


class HeldLeases:
    """Leases by request id, and their renewal."""

    def __init__(self, ledger: Ledger, watch: StoreWatch, clock: Clock) -> None:
        self._ledger = ledger
        self._watch = watch
        self._clock = clock
        self._held: dict[str, Holding] = {}
        self._marked_ms: dict[str, int] = {}
        self._excess: dict[str, int] = {}
        self._unsure: set[str] = set()

    def __len__(self) -> int:
        return len(self._held)

    @property
    def excess(self) -> int:
        """Sequences over a limit after leases were held again, as last seen."""
        return sum(self._excess.values())

    def may_be_over(self, tenant_id: str) -> bool:
        """Whether the tenant may be over a limit since leases were held again."""
        return tenant_id in self._unsure or tenant_id in self._excess

    def add(self, holding: Holding) -> None:
        """Renew it from now on."""
        self._held[holding.lease.request_id] = holding

    def take(self, lease: HeldLease) -> Holding | None:
        """Renew it no longer; what is known of it, None where it was not held."""
        return self._held.pop(lease.request_id, None)

    def forget_marks(self, tenant_id: str | None = None) -> None:
        """The store may have lost which tenants are active, or that this one is."""
        if tenant_id is None:
            self._marked_ms.clear()
        else:
            self._marked_ms.pop(tenant_id, None)

    async def mark(self, tenant_id: str) -> None:
        """Let any gateway find what this tenant holds. Raises LedgerUnavailable where the store is
        away; where only this failed it is tried again, but not by every request: that takes a
        time-out where the shard that knows all tenants is away."""
        now_ms = self._clock.now_ms()
        if now_ms - self._marked_ms.get(tenant_id, 0) < _MARK_AGAIN_MS:
            return
        try:
            await self._watch.ask(lambda: self._ledger.mark_active([tenant_id], now_ms=now_ms))
        except LedgerUnavailable:
            if not await self._watch.lives():
                raise
            self._marked_ms[tenant_id] = now_ms - _MARK_AGAIN_MS + _MARK_FAILED_MS
        else:
            self._marked_ms[tenant_id] = now_ms

    async def renew_all(self) -> None:
        """Renew every lease. Passes over a tenant whose renewal alone fails; raises
        LedgerUnavailable where the store is away."""
        by_tenant: dict[str, list[Holding]] = defaultdict(list)
        for holding in self._held.values():
            by_tenant[holding.lease.tenant_id].append(holding)
        for tenant_id in self._excess.keys() - by_tenant.keys():
            del self._excess[tenant_id]
        self._unsure &= by_tenant.keys()
        tenants = list(by_tenant.items())
        for start in range(0, len(tenants), _RENEWED_AT_ONCE):
            batch = tenants[start : start + _RENEWED_AT_ONCE]
            renewed = await asyncio.gather(*(self._renew(*tenant) for tenant in batch))
            if not all(renewed) and not await self._watch.lives():
                raise LedgerUnavailable(TimeoutError)

    async def _renew(self, tenant_id: str, known: Sequence[Holding]) -> bool:
        try:
            await self.mark(tenant_id)
            # Some may have ended since.
            holdings = [h for h in known if self._held.get(h.lease.request_id) is h]
            leases = [holding.lease for holding in holdings]
            for holding in holdings:
                holding.unheard += 1
            asked_us = self._clock.monotonic_us()
            renewed = await self._watch.ask(lambda: self._ledger.renew(tenant_id, leases))
            took_ms = (self._clock.monotonic_us() - asked_us) // 1000 + 1
            _confirm(holdings, leases, renewed, asked_us, took_ms)
            retaken = renewed.resumed + renewed.recreated
            if retaken:
                self._unsure.add(tenant_id)
                LEASES_RETAKEN.inc(retaken)
                metrics.RECREATED.inc(renewed.recreated)
                _log.warning("%d leases had lapsed or were lost and are held again", retaken)
                self.forget_marks(tenant_id)
                await self.mark(tenant_id)
            if self.may_be_over(tenant_id):
                await self._look_for_excess(tenant_id, holdings)
        except LedgerUnavailable:
            return False
        except Exception as error:  # noqa: BLE001 - a bug with one tenant must not end the others'
            log_failure(_log, error, "the leases of a tenant could not be renewed")
            return False
        return True

    async def _look_for_excess(self, tenant_id: str, holdings: Sequence[Holding]) -> None:
        scopes: dict[str, ScopeLimits] = {}
        for limits in (each for holding in holdings for each in holding.limits):
            known = scopes.setdefault(limits.scope, limits)
            if limits.version > known.version:
                scopes[limits.scope] = limits
        offered = tuple(scopes.values())
        uses = await self._watch.ask(lambda: self._ledger.observe(tenant_id, offered))
        over = [
            use.sequences - use.limits.max_sequences
            for use in uses
            if use.limits.max_sequences is not None
        ]
        self._unsure.discard(tenant_id)
        excess = max([0, *over])
        before = self._excess.pop(tenant_id, 0)
        if excess:
            self._excess[tenant_id] = excess
        if excess > before:
            metrics.EXCESS_SEEN.inc(excess - before)
            _log.warning("%d sequences over a limit since leases were held again", excess)


def _confirm(
    holdings: Sequence[Holding],
    sent: Sequence[HeldLease],
    renewed: Renewed,
    asked_us: int,
    took_ms: int,
) -> None:
    """Remember that the store counts these leases, and until when.

    It does not say which of them were over or lost: then none is held to be confirmed, or known.
    The time that it says is that of the first; the last was renewed `took_ms` later at most.
    """
    if renewed.over:
        return
    for holding, lease in zip(holdings, sent, strict=True):
        holding.unheard -= 1
        holding.confirmed_ms, holding.asked_us = renewed.now_ms + took_ms, asked_us
        holding.is_lost |= renewed.recreated > 0
        if lease.carried:
            holding.lease = replace(lease, carried=False, second=renewed.now_ms // 1000)
