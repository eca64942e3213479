"""A store that answers again is told who waits here.

It may have forgotten nothing, all or some of them, and what lapsed meanwhile: one renewal tells.
Whom it does not know enters again, in the order of their deadlines, so many at once that each waits
for few replies. In between what runs is renewed: with thousands that wait, or a slow store, telling
takes longer than a place lives.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from gateway.domain.queue.tickets import Answer, Unknown
from gateway.serving.ports import LedgerUnavailable
from gateway.serving.queue.entry import Entry
from gateway.serving.queue.refusals import WorkersGone
from gateway.serving.queue.restoring import portions
from gateway.serving.queue.waiting import Waiting
from gateway.telemetry import queue as metrics

ENTERED_AT_ONCE = 64


class Returning:
    """Of one gateway. `heard` takes what a renewal says of an entry; `renew` renews what is due."""

    def __init__(
        self,
        waiting: Waiting,
        *,
        heard: Callable[[Entry, Answer], None],
        renew: Callable[[], Awaitable[None]],
    ) -> None:
        self._waiting = waiting
        self._heard = heard
        self._renew = renew
        self._untold: set[Entry] = set()

    def is_telling(self, entry: Entry) -> bool:
        """Whether it is told here whether the store knows it, and no renewal has to."""
        return entry in self._untold

    async def tell(self) -> None:
        """Who waits here and the store has forgotten enters again. Whoever it does not answer is
        told by a renewal later. Returns early where it is away again."""
        waiting = sorted(
            (entry for entry in self._waiting.book if entry.is_waiting),
            key=lambda entry: entry.order,
        )
        self._untold = set(waiting)
        try:
            for pool, entries in portions(waiting):
                with suppress(LedgerUnavailable):
                    await self._ask(pool, entries)
                await self._renew()
            await self._enter_again([entry for entry in waiting if entry in self._untold])
        finally:
            self._untold.clear()

    async def _ask(self, pool: str, entries: list[Entry]) -> None:
        """A renewal: only those that it does not know are still to be told of."""
        known = [entry for entry in entries if entry.in_store and not entry.is_busy]
        if not known:
            return
        ids, steps = [entry.asked.id for entry in known], [entry.steps for entry in known]
        queue = self._waiting.store.queue
        answers = await self._waiting.store.ask(lambda: queue.renew(pool, ids))
        for entry, answer, step in zip(known, answers, steps, strict=True):
            if entry.steps != step or not isinstance(answer, Unknown):
                self._untold.discard(entry)
                if entry.steps == step:
                    self._heard(entry, answer)

    async def _enter_again(self, forgotten: list[Entry]) -> None:
        for first in range(0, len(forgotten), ENTERED_AT_ONCE):
            if not self._waiting.store.ready.is_set():
                return
            portion = forgotten[first : first + ENTERED_AT_ONCE]
            await asyncio.gather(*map(self._enter, portion))
            self._untold.difference_update(portion)
            await self._renew()

    async def _enter(self, entry: Entry) -> None:
        await entry.quiet()
        if entry.is_waiting and entry.stopped is None:
            metrics.REENTERED.labels(what="ticket").inc()
            try:
                entry.tell(await self._waiting.enter(entry), "renewal")
            except WorkersGone as gone:
                entry.stop(gone)
            except LedgerUnavailable:
                return
