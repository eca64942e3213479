"""What a pool holds, and the moves that its steps are made of.

`pool.Pool` takes them in the order that every step has: let go what has lapsed, do what is asked,
grant whoever has room.
"""

from dataclasses import dataclass, field
from functools import partial

from gateway.domain.queue.capacity import WorkerRoom
from gateway.domain.queue.lines import Line
from gateway.domain.queue.order import Order, take_back
from gateway.domain.queue.prediction import Speed
from gateway.domain.queue.tickets import Band, Message, Place, PlaceState, Queued, Ticket

TAKE_UP_MS = 1_000
FLOOR_PERMILLE = 50
GRANTED_AT_ONCE = 64
"""A step grants no more; who comes next goes on."""
REAPED_AT_ONCE = 64
"""A step lets no more go that have lapsed, the earliest first; who comes next goes on."""


@dataclass
class Waiting:
    """A ticket and how long its gateway vouches for it."""

    ticket: Ticket
    lapses_ms: int
    is_parked: bool = False

    @property
    def due_ms(self) -> int:
        """It is let go then."""
        return min(self.lapses_ms, self.ticket.deadline_ms)


@dataclass
class PoolState:
    """A pool serves one model. `ttl_ms` is how long a ticket or place lives unless renewed."""

    ttl_ms: int
    floor_permille: int = FLOOR_PERMILLE
    lines: dict[Band, Line] = field(default_factory=lambda: {band: Line() for band in Band})
    waiting: dict[str, Waiting] = field(default_factory=dict)
    places: dict[str, Place] = field(default_factory=dict)
    rooms: dict[str, WorkerRoom] = field(default_factory=dict)
    speed: Speed = field(default_factory=Speed)
    messages: list[Message] = field(default_factory=list)
    now_ms: int = 0
    """Of the step that is made, or was made last."""
    is_unfinished: bool = False
    """The last step left some of its work to the next: whoever made it calls `tick`."""

    def __post_init__(self) -> None:
        self.order = Order(self.floor_permille)

    def _waiting_of(self, tenant: str) -> int:
        """Parked ones included."""
        return sum(each.ticket.tenant == tenant for each in self.waiting.values())

    def _room(self, worker: str) -> WorkerRoom:
        """Of a worker that nobody has reported it is only known what it holds."""
        return self.rooms.setdefault(worker, WorkerRoom(worker, 0, 0, 0, 0))

    def _wait(self, ticket: Ticket, now_ms: int, *, is_parked: bool = False) -> None:
        self.waiting[ticket.id] = Waiting(ticket, now_ms + self.ttl_ms, is_parked)
        if not is_parked:
            self.lines[ticket.order_band].add(ticket, came_back=ticket.id in self.places)

    def _withdraw(self, ticket_id: str) -> None:
        waits = self.waiting.pop(ticket_id)
        if not waits.is_parked:
            self.lines[waits.ticket.order_band].remove(waits.ticket)
        self.order.left(ticket_id, self.now_ms)

    def _become(self, place: Place, state: PlaceState) -> None:
        room = self._room(place.worker)
        room.asked_back += (state is PlaceState.TAKEN_BACK) - (place.state is PlaceState.TAKEN_BACK)
        place.state = state

    def _free(self, place: Place, actual_cost: int) -> None:
        came_back = place.state is PlaceState.TAKEN_BACK
        self._room(place.worker).asked_back -= came_back
        del self.places[place.ticket.id]
        self.lines[place.ticket.order_band].end(place.ticket, actual_cost, came_back=came_back)
        self._room(place.worker).remove(place.ticket)

    def _reap(self, now_ms: int) -> None:
        """What nobody renewed, and who has waited until the deadline. What ran is charged as it was
        expected; what was never taken up, or was asked back, is not."""
        self.now_ms = now_ms
        due = [(place.lapses_ms, name) for name, place in self.places.items()]
        due += [(waits.due_ms, name) for name, waits in self.waiting.items()]
        lapsed = sorted(each for each in due if each[0] <= now_ms)
        for _, name in lapsed[:REAPED_AT_ONCE]:
            if name in self.waiting:
                self._withdraw(name)
            else:
                place = self.places[name]
                ran = place.state in (PlaceState.HELD, PlaceState.BEGAN)
                self._free(place, place.ticket.cost if ran else 0)
        self.is_unfinished = len(lapsed) > REAPED_AT_ONCE

    def _dispatch(self, now_ms: int, *, asking: str = "") -> bool:
        """Grant whoever has room, in order. `asking` is told by the reply and has its place taken
        up at once. False where not all could be granted at once."""
        interactive, batch = self.lines[Band.INTERACTIVE], self.lines[Band.BATCH]
        granted = 0
        while (chosen := self.order.choose(interactive, batch, self.rooms, now_ms)) is not None:
            granted += 1
            ticket, worker = chosen.ticket, chosen.worker
            del self.waiting[ticket.id]
            self.lines[ticket.order_band].grant(ticket)
            self.rooms[worker].add(ticket)
            if ticket.id == asking:
                state, lapses_ms = PlaceState.HELD, now_ms + self.ttl_ms
            else:
                state, lapses_ms = PlaceState.GRANTED, now_ms + TAKE_UP_MS
                self.messages.append(Message(ticket.gateway, ticket.id, worker, is_grant=True))
            self.places[ticket.id] = Place(
                ticket, worker, state, now_ms, lapses_ms, chosen.is_floor
            )
            if granted == GRANTED_AT_ONCE:
                self.is_unfinished = True
                return False
        if not asking:
            self._take_back(now_ms)
        return True

    def _take_back(self, now_ms: int) -> None:
        interactive, batch = self.lines[Band.INTERACTIVE], self.lines[Band.BATCH]
        is_due = self.order.is_due(interactive, batch)
        kept_from = partial(self.order.kept_from, as_batch=is_due)
        asked_back = take_back(
            interactive.candidates(), self.places.values(), self.rooms, kept_from, now_ms
        )
        for place in asked_back:
            # It lapses when it would have: whoever holds it may be dead.
            self._become(place, PlaceState.TAKEN_BACK)
            self.messages.append(
                Message(place.ticket.gateway, place.ticket.id, place.worker, is_grant=False)
            )

    def _queued(self, ticket: Ticket) -> Queued:
        """Where it stands."""
        line = self.lines[ticket.order_band]
        ahead = line.ahead(ticket)
        if ticket.order_band is Band.BATCH:
            ahead += self.lines[Band.INTERACTIVE].tokens
        running = sum(place.ticket.cost for place in self.places.values())
        return Queued(line.own_ahead(ticket), ahead, self.speed.wait_ms(ahead, running))
