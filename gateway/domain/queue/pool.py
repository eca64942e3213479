"""The queue of one pool, over all gateways: the specification of `adapters/lua_queue/*.lua`.

Every method is one atomic step at the store's time `now_ms`; what has lapsed by then is let go
first, and whoever then has room is granted last. What gateways must be told is left in `messages`.

```
            ┌── park ◄─────────────┐ (its tenant's own limits have no room)
 enter ──► waits ──► granted ──► held ──► began ──► left
   │         ▲          │ 1 s      │
   ▼         │          ▼          ▼
 refused     └─────── passed on, taken back
```
"""

from collections.abc import Sequence

from gateway.domain.queue.capacity import FORGOTTEN_MS, WorkerRoom
from gateway.domain.queue.parked import first_parked, looks_after
from gateway.domain.queue.pool_state import PoolState
from gateway.domain.queue.tickets import (
    Answer,
    Granted,
    NoWorker,
    Parked,
    Place,
    PlaceState,
    QueueFull,
    StillQueued,
    TakenBack,
    Ticket,
    TooLong,
    Unknown,
)

TOO_LONG_BY = 2
"""A prediction may be too long by so much: who could be served in time is not refused."""


class Pool(PoolState):
    """The steps. The moves that they are made of are `PoolState`'s."""

    def enter(self, ticket: Ticket, *, max_queued: int, is_new: bool = True, now_ms: int) -> Answer:
        """Ask for a place. Idempotent by id. A request that need not wait is never refused; one
        that must is, where its tenant has `max_queued` waiting, or, where it `is_new`, its deadline
        cannot be met: who was let wait before waits until then.
        While no worker is well nobody is taken in; who waits already goes on waiting."""
        self._reap(now_ms)
        if ticket.id in self.places or ticket.id in self.waiting:
            # The reply tells of a grant whose message was lost: that is taken up.
            again = self.take_up if ticket.id in self.places else self.renew
            return again(ticket.id, now_ms=now_ms)
        if not any(room.well_until_ms > now_ms for room in self.rooms.values()):
            return NoWorker()
        self._wait(ticket, now_ms)
        is_done = self._dispatch(now_ms, asking=ticket.id)
        if ticket.id in self.places:
            return Granted(self.places[ticket.id].worker)
        queued = self._queued(ticket)
        expected_ms = (queued.wait_ms or 0) if is_new else 0
        refused = self._refused(ticket, expected_ms, max_queued, now_ms) if is_done else None
        if refused is not None:
            self._withdraw(ticket.id)
            return refused
        if is_done:
            self._take_back(now_ms)
        return queued

    def _refused(
        self, ticket: Ticket, wait_ms: int, max_queued: int, now_ms: int
    ) -> QueueFull | TooLong | None:
        if (others := self._waiting_of(ticket.tenant) - 1) >= max_queued:
            return QueueFull(others)
        if now_ms + wait_ms // TOO_LONG_BY >= ticket.deadline_ms:
            return TooLong(wait_ms)
        return None

    def renew(self, ticket_id: str, *, now_ms: int) -> Answer:
        """Its gateway lives and wants it. Tells again what a lost message told."""
        return self.renew_all([ticket_id], now_ms=now_ms)[0]

    def renew_all(
        self, ticket_ids: Sequence[str], *, standing: bool = True, now_ms: int
    ) -> list[Answer]:
        """The same of several, in one step. Where a waiting one stands is only looked at for
        whoever wants to know its `standing`."""
        self._reap(now_ms)
        self._dispatch(now_ms)
        return [self._renewed(each, now_ms, standing=standing) for each in ticket_ids]

    def _renewed(self, ticket_id: str, now_ms: int, *, standing: bool = True) -> Answer:
        place, waits = self.places.get(ticket_id), self.waiting.get(ticket_id)
        if place is not None:
            if place.state is PlaceState.GRANTED:
                return Granted(place.worker)
            place.lapses_ms = now_ms + self.ttl_ms
            if place.state is PlaceState.TAKEN_BACK:
                return TakenBack()
            return Granted(place.worker)
        if waits is None:
            return Unknown()
        waits.lapses_ms = now_ms + self.ttl_ms
        if waits.is_parked:
            return Parked()
        return self._queued(waits.ticket) if standing else StillQueued()

    def take_up(self, ticket_id: str, *, now_ms: int) -> Answer:
        """A grant has reached its gateway. Unknown where it came too late: enter again."""
        self._reap(now_ms)
        place = self.places.get(ticket_id)
        if place is not None:
            place.lapses_ms = now_ms + self.ttl_ms
            if place.state is PlaceState.GRANTED:
                place.state = PlaceState.HELD
        self._dispatch(now_ms)
        if place is None:
            return Unknown()
        return TakenBack() if place.state is PlaceState.TAKEN_BACK else Granted(place.worker)

    def began(self, ticket_id: str, *, now_ms: int) -> bool:
        """The first token of its answer came: it is not taken back any more, though it may have
        been asked back. False where it holds no place."""
        self._reap(now_ms)
        place = self.places.get(ticket_id)
        if place is not None:
            self._become(place, PlaceState.BEGAN)
            place.lapses_ms = now_ms + self.ttl_ms
        self._dispatch(now_ms)
        return place is not None

    def leave(self, ticket_id: str, *, actual_cost: int | None, now_ms: int) -> None:
        """It ended, at this cost in weighted tokens, 1 at least, or does not want to wait any more.
        `None`: it never ran."""
        self._reap(now_ms)
        if ticket_id in self.waiting:
            self._withdraw(ticket_id)
        elif ticket_id in self.places:
            place = self.places[ticket_id]
            # Else who leaves again and again before a token has each turn, for nothing.
            cost = 0 if actual_cost is None else max(actual_cost, 1)
            if actual_cost is not None:
                self.speed.departed(cost, now_ms - place.granted_ms)
            self._free(place, cost)
            if actual_cost is not None:
                self.messages += looks_after(place.ticket, self.waiting.values())
        self._dispatch(now_ms)

    def give_back(self, ticket_id: str, *, now_ms: int) -> Answer:
        """A place that was taken back is free; its request waits again, unbilled, for
        `TAKEN_BACK_WAIT_MS` at least."""
        return self._again(ticket_id, {PlaceState.TAKEN_BACK}, now_ms=now_ms)

    def park(self, ticket_id: str, *, max_queued: int, now_ms: int) -> Answer:
        """Its tenant's limits have no room: the place is free, the request waits for `unpark`;
        where its tenant has `max_queued` others waiting nothing of it is held."""
        states = {PlaceState.GRANTED, PlaceState.HELD, PlaceState.TAKEN_BACK}
        return self._again(ticket_id, states, max_queued=max_queued, now_ms=now_ms)

    def unpark(self, tenant: str, lot: str, *, now_ms: int) -> None:
        """The limits of this lot may have room: the earliest of its parked requests, whichever
        gateway it is of, waits for a place again."""
        self._reap(now_ms)
        first = first_parked(self.waiting.values(), tenant, lot)
        if first is not None:
            self.waiting[first.id].is_parked = False
            self.lines[first.order_band].add(first)
        self._dispatch(now_ms)

    def resume(self, ticket: Ticket, worker: str, *, began: bool, now_ms: int) -> None:
        """A store that forgot it is told that this request runs on this worker. Idempotent."""
        self.resume_all([(ticket, worker, began)], now_ms=now_ms)

    def resume_all(self, runs: Sequence[tuple[Ticket, str, bool]], *, now_ms: int) -> None:
        """The same of several, in one step: (ticket, worker, began) each."""
        self._reap(now_ms)
        for ticket, worker, began in runs:
            self._resume(ticket, worker, began=began, now_ms=now_ms)
        self._dispatch(now_ms)

    def _resume(self, ticket: Ticket, worker: str, *, began: bool, now_ms: int) -> None:
        if ticket.id in self.waiting:
            self._withdraw(ticket.id)
        if ticket.id not in self.places:
            state = PlaceState.BEGAN if began else PlaceState.HELD
            self.places[ticket.id] = Place(ticket, worker, state, now_ms, now_ms + self.ttl_ms)
            self.lines[ticket.order_band].resume(ticket)
            self._room(worker).add(ticket)
        elif began:
            self._become(self.places[ticket.id], PlaceState.BEGAN)

    def move(self, ticket_id: str, worker: str, *, now_ms: int) -> bool:
        """Its worker failed before a token came, and it is tried on this one, full or not. False
        where it holds no place."""
        self._reap(now_ms)
        place = self.places.get(ticket_id)
        if place is not None:
            self._room(place.worker).remove(place.ticket)
            self._room(worker).add(place.ticket)
            if place.state is PlaceState.TAKEN_BACK:
                self._room(place.worker).asked_back -= 1
                self._room(worker).asked_back += 1
            place.worker = worker
        self._dispatch(now_ms)
        return place is not None

    def report(self, room: WorkerRoom, *, now_ms: int) -> None:
        """What a worker may hold now, and until when it is taken for well."""
        self.report_all([room], now_ms=now_ms)

    def report_all(self, rooms: Sequence[WorkerRoom], *, now_ms: int) -> None:
        """The same of several, in one step."""
        self._reap(now_ms)
        for name, room in list(self.rooms.items()):
            if not room.running and room.well_until_ms + FORGOTTEN_MS <= now_ms:
                del self.rooms[name]
        for room in rooms:
            known = self._room(room.id)
            known.sequences_max, known.batch_max = room.sequences_max, room.batch_max
            known.tokens_max, known.well_until_ms = room.tokens_max, room.well_until_ms
        self._dispatch(now_ms)

    def tick(self, *, now_ms: int) -> None:
        """Time has passed."""
        self._reap(now_ms)
        self._dispatch(now_ms)

    def _again(
        self,
        ticket_id: str,
        states: set[PlaceState],
        *,
        max_queued: int | None = None,
        now_ms: int,
    ) -> Answer:
        """`max_queued`: it is parked, where its tenant has fewer waiting."""
        self._reap(now_ms)
        place = self.places.get(ticket_id)
        if place is None or place.state not in states:
            self._dispatch(now_ms)
            return self._renewed(ticket_id, now_ms)
        # First it waits, then its place is free: so its tenant was active all along.
        is_parked = max_queued is not None
        ticket = place.ticket if is_parked else place.ticket.came_back(now_ms)
        others = self._waiting_of(ticket.tenant)
        is_full = max_queued is not None and others >= max_queued
        if ticket.deadline_ms > now_ms and not is_full:
            self._wait(ticket, now_ms, is_parked=is_parked)
        self._free(place, 0)
        self._dispatch(now_ms)
        return QueueFull(others) if is_full else self._renewed(ticket_id, now_ms)
