"""Requests that wait for their own tenant's limits: when to try again.

A parked request is tried again where the limits may have room: when this gateway settles something
of its tenant, when the refusal said that there would be room, or when nothing was heard for a
while. Each time the limits are looked at first, without taking anything, at a bounded number of
looks a second over all tenants; the store then lets the earliest of the tenant's parked requests
wait for a place, whichever gateway it is of. When it was admitted the next is tried at once. Who
comes meanwhile overtakes none of this gateway that had room wherever the newcomer has.
"""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from gateway.errors import LimitReached, WeirError
from gateway.serving.ports import Clock, LedgerUnavailable
from gateway.serving.queue.asked import QueueSettings
from gateway.serving.queue.entry import Entry, State
from gateway.serving.queue.scopes import Sight
from gateway.serving.queue.store import QueueStore

COMPUTED = frozenset({"tokens", "requests"})
"""Kinds of limits whose `retry-after` is when there will be room; of others nobody knows."""
_LATE_US = 2_000
"""A look just before there is room would be for nothing, and two clocks do not run alike."""


@dataclass
class Lot:
    """The parked requests of one tenant in one pool, of this gateway."""

    pool: str
    tenant: str
    due_us: int
    """When the limits are looked at next."""
    parked: dict[Entry, Sight] = field(default_factory=dict)

    @property
    def head(self) -> Entry | None:
        """The earliest that is still parked."""
        waiting = [entry for entry in self.parked if entry.state is State.PARKED]
        return min(waiting, key=lambda entry: (entry.asked.band, entry.order), default=None)


class Lots:
    """All that is parked in this gateway."""

    def __init__(self, store: QueueStore, clock: Clock, settings: QueueSettings) -> None:
        self._store = store
        self._clock = clock
        self._again_us = settings.look_again_ms * 1000
        self._pace_s = 1 / settings.looks_per_s
        self._lots: dict[tuple[str, str], Lot] = {}
        self._changed = asyncio.Event()
        self.looks = 0

    def __len__(self) -> int:
        return sum(len(lot.parked) for lot in self._lots.values())

    def add(self, entry: Entry, sight: Sight, refused: LimitReached) -> None:
        """It is parked, since its tenant's limits said this."""
        pool, tenant, now_us = entry.asked.pool, entry.asked.tenant, self._clock.monotonic_us()
        after_us = self._again_us
        if refused.type in COMPUTED and refused.retry_after_ms is not None:
            after_us = refused.retry_after_ms * 1000 + _LATE_US
        lot = self._lots.setdefault((pool, tenant), Lot(pool, tenant, now_us + after_us))
        lot.parked[entry] = sight
        lot.due_us = min(lot.due_us, now_us + after_us)
        self._changed.set()

    def ahead_of(self, entry: Entry) -> Entry | None:
        """A parked request that must not be overtaken by one that has just come: earlier, of the
        same limits, and no larger, so that there is room for it wherever there is for the other."""
        asked = entry.asked
        lot = self._lots.get((asked.pool, asked.tenant))
        if lot is None or entry.refused is not None:
            return None
        for each in lot.parked:
            other = each.asked
            if (
                other.key == asked.key
                and other.sequences <= asked.sequences
                and other.need_tokens <= asked.need_tokens
                and (other.band, each.order) < (asked.band, entry.order)
            ):
                lot.due_us = self._clock.monotonic_us()
                self._changed.set()
                return each
        return None

    def remove(self, entry: Entry, *, admitted: bool) -> None:
        """It waits for its limits no more. Where it was admitted there may be room for another."""
        lot = self._lots.get((entry.asked.pool, entry.asked.tenant))
        if lot is None or lot.parked.pop(entry, None) is None:
            return
        if not lot.parked:
            del self._lots[lot.pool, lot.tenant]
        elif admitted:
            lot.due_us = self._clock.monotonic_us()
            self._changed.set()

    def settled(self, tenant: str) -> None:
        """Something of this tenant ended here: there may be room."""
        for lot in self._of(tenant):
            lot.due_us = self._clock.monotonic_us()
            self._changed.set()

    async def run(self) -> None:
        """Look at limits, those first that are due for longest; for ever."""
        while True:
            lot = min(self._lots.values(), key=lambda lot: lot.due_us, default=None)
            now_us = self._clock.monotonic_us()
            if lot is None or lot.due_us > now_us or not self._store.ready.is_set():
                wait_s = self._again_us / 1e6
                if lot is not None and lot.due_us > now_us:
                    wait_s = min(wait_s, (lot.due_us - now_us) / 1e6)
                self._changed.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(wait_s):
                        await self._changed.wait()
                continue
            lot.due_us = now_us + self._again_us
            head = lot.head
            if head is not None:
                await self._look(lot, head)
                await asyncio.sleep(self._pace_s)

    async def _look(self, lot: Lot, head: Entry) -> None:
        """Let the earliest wait for a place where there is room for it."""
        self.looks += 1
        with suppress(LedgerUnavailable, WeirError):
            if await lot.parked[head].has_room():
                queue = self._store.queue
                await self._store.ask(lambda: queue.unpark(lot.pool, lot.tenant))

    def _of(self, tenant: str) -> Iterator[Lot]:
        return (lot for lot in list(self._lots.values()) if lot.tenant == tenant)
