"""The sweep: what nobody renews lapses, also of a tenant that nobody asks for any more.

One gateway at a time, for as long as a sweep takes. It goes in small batches and rests for as long
as each took, so that however many tenants there are, requests are decided between them. A tenant
that cannot be asked (its shard is away) is passed over until the next sweep.
"""

import asyncio
import secrets
import time
from collections.abc import Sequence

from gateway.serving.ports import Clock, Ledger, LedgerUnavailable
from gateway.serving.store_watch import StoreWatch

IDLE_MS = 60_000
"""Longer than any gateway relies on a mark (`held_leases`)."""
TURN_MS = 5_000
AT_ONCE = 16


class Sweeper:
    """Sweeps all tenants that may hold something."""

    def __init__(self, ledger: Ledger, watch: StoreWatch, clock: Clock) -> None:
        self._ledger = ledger
        self._watch = watch
        self._clock = clock
        self._name = secrets.token_hex(8)

    async def sweep(self, *, period_ms: int) -> None:
        """One sweep, unless another gateway is at it or was within `period_ms`. Raises
        LedgerUnavailable where the store is away."""
        cursor, is_last = 0, False
        while not is_last:
            if not await self._claim(TURN_MS):
                return
            cursor, names = await self._page(cursor)
            is_last = cursor == 0
            for start in range(0, len(names), AT_ONCE):
                began = time.monotonic()
                await self._batch(names[start : start + AT_ONCE])
                await asyncio.sleep(time.monotonic() - began)
                if not await self._claim(TURN_MS):
                    return
        await self._claim(period_ms)

    async def _batch(self, names: Sequence[str]) -> None:
        found = await asyncio.gather(*(self._leases(name) for name in names))
        at_rest = [name for name, leases in zip(names, found, strict=True) if leases == 0]
        before_ms = self._clock.now_ms() - IDLE_MS
        await self._watch.ask(lambda: self._ledger.take_out(at_rest, before_ms=before_ms))
        if None in found and not await self._watch.lives():
            raise LedgerUnavailable(TimeoutError)

    async def _leases(self, tenant_id: str) -> int | None:
        """How many it holds; None where it could not be asked. That is no doubt about the store by
        itself: nobody waits for it."""
        try:
            leases, _ = await self._ledger.reap(tenant_id)
        except LedgerUnavailable:
            return None
        return leases

    async def _page(self, cursor: int) -> tuple[int, list[str]]:
        return await self._watch.ask(lambda: self._ledger.active_page(cursor))

    async def _claim(self, for_ms: int) -> bool:
        return await self._watch.ask(lambda: self._ledger.claim_sweep(self._name, for_ms=for_ms))
