"""What keeps tickets and places alive: renewals, messages, and telling a store what it forgot.

- *Renewals*: one call a pool with all ids, each 500 ms for what waits or may be taken back, each
  2 s for what sends tokens, and only then with where each stands: with thousands waiting that is
  what costs the store. They tell again what a lost message told.
- *A store that is back*, or came back empty: first it is told what runs here, so that nobody is
  granted what is in use; then those who wait and it has forgotten enter again (`returning`).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

from gateway.domain.queue.tickets import (
    Answer,
    Band,
    Granted,
    Message,
    Parked,
    Queued,
    StillQueued,
    TakenBack,
    Unknown,
)
from gateway.serving.ports import Clock, LedgerUnavailable
from gateway.serving.queue.asked import QueueSettings
from gateway.serving.queue.entry import Entry, State
from gateway.serving.queue.restoring import portions
from gateway.serving.queue.returning import Returning
from gateway.serving.queue.waiting import Waiting
from gateway.telemetry.logs import log_failure

TICK_S = 0.1
_LONG_US = 10**12
_log = logging.getLogger(__name__)


class Keeper:
    """The loops of one gateway's waiting room."""

    def __init__(
        self,
        waiting: Waiting,
        clock: Clock,
        settings: QueueSettings,
        *,
        on_room: Callable[[Entry], None],
    ) -> None:
        """`on_room` is told of a parked request whose limits may have room."""
        self._waiting = waiting
        self._store = waiting.store
        self._book = waiting.book
        self._clock = clock
        self._settings = settings
        self._on_room = on_room
        self._renewed_us = self._renewed_began_us = -_LONG_US
        self._returning = Returning(waiting, heard=self._heard, renew=self._renew_due)

    async def keep(self) -> None:
        """Renew, and see the store go and come back; for ever."""
        while True:
            await self._store.until_wanted(TICK_S)
            if not self._store.is_open:
                self._store.lost()
            elif not self._store.ready.is_set():
                await self._returned()
            else:
                await self._renew_due()

    async def listen(self) -> None:
        """Hear what this gateway is told; for ever."""
        async for message in self._store.queue.messages():
            self.hear(message)

    def hear(self, message: Message) -> None:
        """Tell the request. One that is not here any more has left, or is about to."""
        entry = self._book.get(message.ticket_id)
        if entry is None:
            return
        if message.is_look:
            self._on_room(entry)
            return
        answer = Granted(message.worker) if message.is_grant else TakenBack()
        if entry.state is not State.HELD:
            entry.tell(answer, "message")
        elif not message.is_grant:
            self._asked_back(entry)

    async def renew(self, *, began_too: bool = True) -> None:
        """Tell the store that all of these live, and hear how they stand."""
        due = [
            entry
            for entry in self._book
            if not entry.is_busy
            and not _runs_without(entry)
            and not self._returning.is_telling(entry)
            and (began_too or not _is_settled_in(entry))
        ]
        told: set[str] = set()
        for pool, entries in portions(due):
            with suppress(LedgerUnavailable):
                await self._renew(pool, entries, told, standing=began_too)

    async def _renew(
        self, pool: str, entries: list[Entry], told: set[str], *, standing: bool
    ) -> None:
        """`told` has the pools of which it was told what runs."""
        ids, steps = [entry.asked.id for entry in entries], [entry.steps for entry in entries]
        queue = self._store.queue
        answers = await self._store.ask(lambda: queue.renew(pool, ids, standing=standing))
        if pool not in told and any(isinstance(answer, Unknown) for answer in answers):
            # Perhaps it has forgotten all: who enters again must not be granted what is in use.
            await self._waiting.restoring.tell_runs(pool)
            told.add(pool)
        for entry, answer, step in zip(entries, answers, steps, strict=True):
            # What it asked for itself meanwhile is newer.
            if entry.state is not State.GONE and entry.steps == step:
                self._heard(entry, answer)

    async def _renew_due(self) -> None:
        now_us = self._clock.monotonic_us()
        if now_us - self._renewed_us < self._settings.renew_ms * 1000:
            return
        began_too = now_us - self._renewed_began_us >= self._settings.renew_began_ms * 1000
        self._renewed_us = now_us
        if began_too:
            self._renewed_began_us = now_us
        with suppress(LedgerUnavailable):
            await self._waiting.send_owed(now_us)
        await self.renew(began_too=began_too)

    def _heard(self, entry: Entry, answer: Answer) -> None:
        if isinstance(answer, Unknown):
            # Perhaps it has forgotten all: what runs is told at the next turn.
            self._renewed_us = self._renewed_began_us = -_LONG_US
        if entry.is_waiting:
            if isinstance(answer, Queued | StillQueued | Parked):
                self._book.move(
                    entry, State.PARKED if isinstance(answer, Parked) else State.WAITING
                )
            entry.tell(answer, "renewal")
        elif entry.state is State.HELD:
            if isinstance(answer, TakenBack):
                self._asked_back(entry)
            elif not isinstance(answer, Granted):
                self._waiting.keep(self._forgotten(entry))
            if entry.untold:
                self.tell_began(entry)

    def may_be_taken_back(self, entry: Entry) -> bool:
        """Whether the store may ask its place back until it is told that it began."""
        return entry.asked.band is Band.BATCH

    def _asked_back(self, entry: Entry) -> None:
        if entry.began:
            entry.untold = True
            self.tell_began(entry)
        else:
            entry.take_back()

    def tell_began(self, entry: Entry) -> None:
        """Let the store know, soon, that its first token came."""
        self._waiting.keep(self._tell_began(entry))

    async def _tell_began(self, entry: Entry) -> None:
        await entry.quiet()
        if entry.state is not State.HELD:
            return
        pool, request_id, queue = entry.asked.pool, entry.asked.id, self._store.queue
        with suppress(LedgerUnavailable):
            await entry.occupy(self._store.ask(lambda: queue.began(pool, request_id)))
            entry.untold = False

    async def move(self, entry: Entry, worker: str) -> None:
        """It is tried on this worker now."""
        entry.worker = worker
        await entry.quiet()
        if entry.state is not State.HELD or entry.worker != worker:
            return
        pool, request_id, queue = entry.asked.pool, entry.asked.id, self._store.queue
        if not entry.in_store or not self._store.ready.is_set():
            await self._forgotten(entry)
            return
        with suppress(LedgerUnavailable):
            if not await entry.occupy(
                self._store.ask(lambda: queue.move(pool, request_id, worker))
            ):
                await self._forgotten(entry)

    async def _forgotten(self, entry: Entry) -> None:
        """The store does not know that it runs: it is told."""
        await entry.quiet()
        if entry.state is State.HELD and self._store.ready.is_set():
            with suppress(LedgerUnavailable):
                await self._waiting.restoring.resume(entry.asked.pool, [entry])

    async def _returned(self) -> None:
        """The store answers again: it is told what runs, then who waits."""
        try:
            await self._waiting.send_owed(self._clock.monotonic_us())
            for pool, entries in portions(self._book):
                await self._waiting.restoring.resume(pool, entries)
        except LedgerUnavailable:
            if not self._store.is_open:
                return
        self._store.ready.set()
        await self._returning.tell()


async def forever(name: str, loop: Callable[[], Awaitable[None]]) -> None:
    """Run a loop for ever: a bug in one pass ends neither it nor any other."""
    while True:
        try:
            await loop()
        except Exception as error:  # noqa: BLE001 - logged; it goes on
            log_failure(_log, error, "%s failed", name)
        await asyncio.sleep(TICK_S)


def _runs_without(entry: Entry) -> bool:
    """Whether it runs, and the store has not been told on which worker; or waits in no queue."""
    if entry.state is State.ABSENT:
        return True
    return entry.state is State.HELD and (entry.worker is None or not entry.in_store)


def _is_settled_in(entry: Entry) -> bool:
    """Whether nothing can come to it but its end."""
    return entry.state is State.HELD and (entry.began or entry.asked.band is Band.INTERACTIVE)
