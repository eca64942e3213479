"""THE WAITING ROOM: a place of the pool, then the tenant's scopes, before anything is sent.

```
        ┌─────────────── taken back before a token ◄──────────────┐
        ▼                                                         │
 ask ──► wait ──► place ──► scopes ──► admitted: route, stream, record, settle, end
  │       │         ▲          │
  ▼       ▼         │          ▼ no room for now (429), and it may wait
 refused at once,   └────── parked ──► its deadline: the limit's own 429
 or at its deadline
```
Nothing is sent to the client while it waits. Whoever is cancelled or leaves, at any await, leaves
nothing behind.
"""

import asyncio
from collections.abc import Mapping
from typing import TypeVar

from gateway.domain.queue.tickets import Band
from gateway.errors import LimitReached
from gateway.serving.authenticate import Caller
from gateway.serving.ports import ClientConnection, ClientGone, Clock
from gateway.serving.queue import refusals
from gateway.serving.queue.absence import Absence
from gateway.serving.queue.asked import PlaceAsked, QueueSettings, patience
from gateway.serving.queue.book import Book
from gateway.serving.queue.entry import Entry
from gateway.serving.queue.held import HeldPlace
from gateway.serving.queue.keeping import Keeper, forever
from gateway.serving.queue.parking import Lots
from gateway.serving.queue.refusals import WaitTooLong
from gateway.serving.queue.refused import LatelyRefused
from gateway.serving.queue.restoring import Restoring, Workers
from gateway.serving.queue.scopes import Scopes
from gateway.serving.queue.store import QueueStore, Watch
from gateway.serving.queue.waiting import Waiting
from gateway.serving.queue_ports import PoolQueue
from gateway.serving.withdrawal import Withdrawn
from gateway.telemetry import queue as metrics
from gateway.telemetry.trace_names import PARKED, PLACE
from gateway.wire.request import CompletionRequest

Admitted = TypeVar("Admitted")


class Places:
    """The waiting room of one gateway. `watch` says whether the store answers, `workers` what the
    store may be told of them."""

    def __init__(
        self,
        queue: PoolQueue,
        watch: Watch,
        clock: Clock,
        workers: Workers,
        settings: QueueSettings | None = None,
    ) -> None:
        self.settings = settings or QueueSettings()
        self._clock = clock
        self._book = Book()
        self._store = QueueStore(queue, watch, self._book)
        self._waiting = Waiting(
            self._store, self._book, Restoring(self._store, self._book, workers)
        )
        self._lots = Lots(self._store, clock, self.settings)
        self._keeper = Keeper(self._waiting, clock, self.settings, on_room=self._lots.may_have_room)
        self._lately_refused = LatelyRefused(clock)
        self._absence = Absence(workers.has_any, clock)
        self._stopping = False

    @property
    def count(self) -> int:
        """Requests that wait here or hold a place."""
        return len(self._book)

    @property
    def parked(self) -> int:
        """Requests that wait for their tenant's limits."""
        return len(self._lots)

    async def run(self) -> None:
        """All that goes on behind the requests; for ever. Ends by cancellation."""
        await asyncio.gather(
            forever("the renewal of tickets", self._keeper.keep),
            forever("what a gateway is told of its tickets", self._keeper.listen),
            forever("a look at limits", self._lots.run),
        )

    async def until_worker(
        self,
        pool: str,
        caller: Caller,
        request: CompletionRequest,
        headers: Mapping[bytes, bytes],
        connection: ClientConnection,
    ) -> int:
        """Return once a worker of the request's pool is there, with the ms that this took. Raises
        what `Absence.until_worker` and `patience` do."""
        waits = patience(caller, request, headers, self.settings.batch_wait_ms)
        try:
            return await self._absence.until_worker(
                pool, caller.tenant.id, waits, connection, key=caller.key.id
            )
        except BaseException as error:
            _count(error, waits.band)
            raise

    async def place(
        self, asked: PlaceAsked, connection: ClientConnection | None = None
    ) -> HeldPlace:
        """A place on a worker; waits for it. Where the store is away an interactive request has
        one at once, on no worker: only what the ledger lets run then may run.

        Raises LimitReached of type `queue` (429) where its tenant has too many waiting, WaitTooLong
        (503) where there is no place in time, WorkersGone (503) where there is no worker,
        Overloaded(admission_unavailable) where the store does not tell, ClientGone where the client
        left. Then, and when cancelled, nothing is held.
        """
        return await self._place(self._entry(asked), connection)

    def _entry(self, asked: PlaceAsked) -> Entry:
        now_us = self._clock.monotonic_us()
        entry = Entry(asked, self._clock, now_us, now_us + asked.wait_ms * 1000)
        if self._stopping:
            entry.stop(refusals.shutting_down())
        return entry

    async def _place(self, entry: Entry, connection: ClientConnection | None) -> HeldPlace:
        if connection is not None:
            connection.on_leave(lambda: entry.stop(ClientGone()))
        try:
            entry.check()
            self._book.add(entry)
            await entry.traced(PLACE, self._waiting.get_place(entry))
        except BaseException as error:
            self._gave_up(entry, error)
            raise
        return HeldPlace(entry, self._waiting, self._keeper)

    async def admit(
        self,
        asked: PlaceAsked,
        scopes: Scopes[Admitted],
        connection: ClientConnection | None = None,
    ) -> tuple[HeldPlace, Admitted]:
        """A place and the tenant's scopes. Where these have no room for now the place goes back and
        the request is parked, until its deadline.

        Raises what `place` and `scopes.admit` raise; then nothing is held. A request that may not
        wait, and whose own limits have no room, is told of these also where there is no place; so
        is one whose tenant was refused by them a moment ago, before it has any.
        """
        entry = self._entry(asked)
        await self._look_first(entry, scopes)
        try:
            place = await self._place(entry, connection)
        except WaitTooLong:
            refused = None if asked.max_queued else await scopes.refusal()
            if refused is not None:
                raise refused from None
            raise
        try:
            while True:
                try:
                    self._stay_behind(place.entry)
                    admitted = await scopes.admit()
                except LimitReached as refused:
                    self._lately_refused.note(asked.tenant, refused)
                    await self._park(place, scopes, refused)
                else:
                    self._lots.remove(place.entry, admitted=True)
                    return place, admitted
        except BaseException as error:
            self._lots.remove(place.entry, admitted=False)
            self._lately_refused.note(asked.tenant, error)
            self._gave_up(place.entry, error)
            raise

    def settled(self, tenant: str, key: str | None = None) -> None:
        """This gateway has settled a lease of this tenant, and of this key where it is known: its
        parked requests may have room."""
        self._lots.settled(tenant, key)

    def stop_all(self) -> None:
        """The gateway goes down: whoever waits is told so, now or on asking; who has a place keeps
        it."""
        self._stopping = True
        self._absence.stop_all()
        self._book.stop_all(refusals.shutting_down)

    def end_withdrawn(self, withdrawn: Withdrawn) -> None:
        """Whoever waits with a withdrawn key, or for a withdrawn tenant, is told so."""
        self._absence.end_withdrawn(withdrawn)
        self._book.end_withdrawn(withdrawn)

    async def until_told(self) -> None:
        """Return when the store has heard of all that ended here, or did not answer."""
        await self._waiting.until_told()

    def _stay_behind(self, entry: Entry) -> None:
        """Raise what an earlier request was refused with, where one of the same limits is parked
        that this one would overtake."""
        ahead = self._lots.ahead_of(entry)
        if ahead is not None and ahead.refused is not None:
            raise refusals.of_another(ahead.refused)

    async def _look_first(self, entry: Entry, scopes: Scopes[Admitted]) -> None:
        """Raise what it would be told with a place, where that is known without one: its tenant was
        refused a moment ago, and its limits still have no room for it."""
        try:
            refused = await self._lately_refused.look(entry, scopes)
            if isinstance(refused, LimitReached):
                self._check_may_park(entry, refused)
            elif refused is not None:
                raise refused
        except BaseException as error:
            _count(error, entry.asked.band)
            raise

    async def _park(
        self, place: HeldPlace, scopes: Scopes[Admitted], refused: LimitReached
    ) -> None:
        """Return when it has a place again. Raises the refusal where it may not wait for that."""
        entry = place.entry
        self._check_may_park(entry, refused)
        entry.refused, entry.refused_us = refused, self._clock.monotonic_us()
        self._lots.add(entry, scopes, refused)
        await entry.traced(PARKED, self._waiting.park(entry))

    def _check_may_park(self, entry: Entry, refused: LimitReached) -> None:
        """Raise the refusal where it may not wait, and what is told where too many do."""
        asked = entry.asked
        if not asked.max_queued or not _in_time(entry, refused):
            raise refused
        waiting = self._book.waiting_of(asked.pool, asked.tenant)
        if waiting >= asked.max_queued and not entry.was_let_wait:
            raise refusals.queue_full(waiting, asked.max_queued, refused.retry_after_ms)

    def _gave_up(self, entry: Entry, error: BaseException) -> None:
        self._waiting.depart(entry, None)
        _count(error, entry.asked.band)


def _count(error: BaseException, band: Band) -> None:
    reason = refusals.reason_of(error)
    if reason is not None:
        metrics.REFUSALS.labels(request_class=band.name.lower(), reason=reason).inc()


def _in_time(entry: Entry, refused: LimitReached) -> bool:
    """Whether its limits can have room before its deadline: of what counts by the minute, when
    enough has aged, unless a refund of tokens comes first; of sequences nobody knows."""
    if refused.type == "requests":
        return (refused.retry_after_ms or 0) < entry.left_ms
    return entry.left_ms > 0
