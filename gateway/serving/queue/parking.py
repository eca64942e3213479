"""Requests that wait for their own tenant's limits: when to try again.

Parked requests of one pool, tenant and key have the same limits: they are a *lot*, and wait for
nobody else. A lot is tried again where its limits may have room: when something of its tenant was
settled, here or at another gateway, when the refusal said that there would be room, or when nothing
was heard for a while. Each time the limits are looked at first, without taking anything, at a
bounded number of looks a second over all lots; the store then lets the earliest of the lot wait for
a place, whichever gateway it is of. When it was admitted the next is tried at once. Who comes
meanwhile overtakes none of this gateway that had room wherever the newcomer has.
"""

import asyncio
from collections import defaultdict
from contextlib import suppress

from gateway.errors import LimitReached, WeirError
from gateway.serving.ports import Clock, LedgerUnavailable
from gateway.serving.queue.asked import QueueSettings
from gateway.serving.queue.entry import Entry
from gateway.serving.queue.lots import Lot, Turns, is_before
from gateway.serving.queue.scopes import Sight
from gateway.serving.queue.store import QueueStore

COMPUTED = frozenset({"tokens", "requests"})
"""Kinds of limits whose `retry-after` is when there will be room; of others nobody knows."""
_LATE_US = 2_000
"""A look just before there is room would be for nothing, and two clocks do not run alike."""


class Lots:
    """All that is parked in this gateway."""

    def __init__(self, store: QueueStore, clock: Clock, settings: QueueSettings) -> None:
        self._store = store
        self._clock = clock
        self._again_us = settings.look_again_ms * 1000
        self._pace_s = 1 / settings.looks_per_s
        self._lots: defaultdict[str, dict[tuple[str, str], Lot]] = defaultdict(dict)
        self._turns = Turns()
        self._changed = asyncio.Event()
        self._count = 0
        self.looks = 0

    def __len__(self) -> int:
        return self._count

    def add(self, entry: Entry, sight: Sight, refused: LimitReached) -> None:
        """It is parked, since its limits said this."""
        asked, now_us = entry.asked, self._clock.monotonic_us()
        after_us = self._again_us
        if refused.type in COMPUTED and refused.retry_after_ms is not None:
            after_us = refused.retry_after_ms * 1000 + _LATE_US
        due_us = now_us + after_us
        of_tenant = self._lots[asked.tenant]
        lot = of_tenant.get((asked.pool, asked.key))
        if lot is None:
            lot = of_tenant[asked.pool, asked.key] = Lot(asked.pool, asked.tenant, asked.key, -1)
            self._put(lot, due_us)
        elif due_us < lot.due_us:
            self._put(lot, due_us)
        self._count += entry not in lot.parked
        lot.add(entry, sight)
        lot.is_of_key = refused.of_key

    def ahead_of(self, entry: Entry) -> Entry | None:
        """A parked request that must not be overtaken by one that has just come: earlier, of the
        same limits, and no larger, so that there is room for it wherever there is for the other."""
        lot = self._lot_of(entry)
        if lot is None or entry.refused is not None:
            return None
        asked = entry.asked
        for each in lot.before(entry):
            other = each.asked
            if other.sequences <= asked.sequences and other.need_tokens <= asked.need_tokens:
                self._wake(lot)
                return each
        return None

    def remove(self, entry: Entry, *, admitted: bool) -> None:
        """It waits for its limits no more. Where it was admitted there may be room for another."""
        lot = self._lot_of(entry)
        if lot is None or not lot.remove(entry):
            return
        self._count -= 1
        if not lot.parked:
            self._turns.end(lot)
            of_tenant = self._lots[lot.tenant]
            del of_tenant[lot.pool, lot.key]
            if not of_tenant:
                del self._lots[lot.tenant]
        elif admitted:
            self._wake(lot)

    def settled(self, tenant: str, key: str | None) -> None:
        """Something of this tenant, and of this key where it is known, ended: there may be room for
        who has this key, and for whoever its tenant's limits had none."""
        for lot in self._lots.get(tenant, {}).values():
            if key is None or lot.key == key or not lot.is_of_key:
                self._wake(lot)

    def may_have_room(self, entry: Entry) -> None:
        """Something ended at another gateway, and this one is parked for what it had."""
        self.settled(entry.asked.tenant, entry.asked.key)

    async def run(self) -> None:
        """Look at limits, at those first that may have room; for ever."""
        while True:
            now_us = self._clock.monotonic_us()
            is_ready = self._store.ready.is_set()
            turn = self._turns.next(now_us) if is_ready else None
            if turn is None:
                await self._until_changed(now_us if is_ready else None)
                continue
            lot, was_woken = turn
            self._put(lot, now_us + self._again_us)
            head = lot.head
            if head is not None:
                await self._look(lot, head, was_woken=was_woken)
                await asyncio.sleep(self._pace_s)

    async def _until_changed(self, now_us: int | None) -> None:
        """Until something was woken or is due; None: for a while."""
        wait_s = self._again_us / 1e6
        due_us = self._turns.next_us()
        if now_us is not None and due_us is not None:
            wait_s = min(wait_s, (due_us - now_us) / 1e6)
        self._changed.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                await self._changed.wait()

    async def _look(self, lot: Lot, head: Entry, *, was_woken: bool) -> None:
        """Let the earliest wait for a place where there is room for it. Where nobody told of any,
        and another lot of its tenant has an earlier one, all of those are looked at in order: the
        room may be the tenant's."""
        self.looks += 1
        with suppress(LedgerUnavailable, WeirError):
            if await lot.parked[head].has_room():
                others = self._lots.get(lot.tenant, {}).values()
                if not was_woken and any(
                    is_before(each, head) for each in others if not each.is_of_key
                ):
                    self.settled(lot.tenant, lot.key)
                    return
                queue = self._store.queue
                await self._store.ask(lambda: queue.unpark(lot.pool, lot.tenant, lot.key))
                return
        # Its key may have room by now, and its tenant none.
        lot.is_of_key = False
        self._turns.missed(lot)

    def _lot_of(self, entry: Entry) -> Lot | None:
        return self._lots.get(entry.asked.tenant, {}).get((entry.asked.pool, entry.asked.key))

    def _put(self, lot: Lot, due_us: int) -> None:
        self._turns.put(lot, due_us)
        self._changed.set()

    def _wake(self, lot: Lot) -> None:
        self._turns.wake(lot)
        self._changed.set()
