"""Which request is granted next, on which worker, and what is taken back for it (INV-8, INV-10)."""

from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass

from gateway.domain.queue.capacity import WorkerRoom
from gateway.domain.queue.lines import Line
from gateway.domain.queue.tickets import TAKEN_BACK_MAX, Band, Place, PlaceState, Ticket

CREDIT = 1_000
"""Of the floor: one dispatch of batch."""
LOOKED_AT = 128
"""Tickets of a band for which room is looked for; whoever is behind them waits."""
TAKEN_BACK_FOR = 8
"""At most so many waiting interactive requests are looked at when batch is taken back."""


@dataclass
class Bypass:
    """The first in order that no worker has room for, while smaller ones are granted past it. Past
    as much as it costs itself a worker is kept for it, so that it is not overtaken for ever."""

    ticket_id: str = ""
    tokens: int = 0
    worker: str = ""

    def clear(self) -> None:
        """Nobody is overtaken."""
        self.ticket_id, self.tokens, self.worker = "", 0, ""

    def passed(self, first: Ticket, by: Ticket, rooms: Iterable[WorkerRoom]) -> None:
        """`by` is granted before `first`. `rooms` are the workers that are well."""
        if self.ticket_id != first.id:
            self.ticket_id, self.tokens, self.worker = first.id, 0, ""
        self.tokens += by.cost
        if self.tokens >= first.cost and not self.worker:
            emptiest = min(rooms, key=lambda room: (room.tokens, room.id), default=None)
            self.worker = "" if emptiest is None else emptiest.id


@dataclass(frozen=True)
class Choice:
    """The next grant."""

    ticket: Ticket
    worker: str


class Order:
    """Chooses. `floor_permille` is batch's share of dispatches while interactive waits."""

    def __init__(self, floor_permille: int) -> None:
        self.floor_permille = floor_permille
        self.credit = 0
        self.bypass = Bypass()

    def choose(
        self, interactive: Line, batch: Line, rooms: Mapping[str, WorkerRoom], now_ms: int
    ) -> Choice | None:
        """The next grant, or None where nobody who waits has room. Counts it as made."""
        if not any(_is_open(room, now_ms) for room in rooms.values()):
            return None
        first = [(ticket, False) for ticket in _first(interactive.candidates(), LOOKED_AT)]
        if self.bypass.worker and not _is_well(rooms.get(self.bypass.worker), now_ms):
            self.bypass.worker = ""
        is_floor = self.credit >= CREDIT and self._fits_any(first, rooms, now_ms)
        second = [
            (ticket, not is_floor) for ticket in _first(_batch_order(batch, now_ms), LOOKED_AT)
        ]
        order = second + first if is_floor else first + second
        for ticket, as_batch in order:
            worker = self._worker(ticket, rooms, as_batch=as_batch, now_ms=now_ms)
            if worker is None:
                continue
            self._count(ticket, order, is_contested=bool(first and second), is_floor=is_floor)
            if ticket is not order[0][0] and not is_floor:
                well = [room for room in rooms.values() if _is_well(room, now_ms)]
                self.bypass.passed(order[0][0], ticket, well)
            elif ticket.id == self.bypass.ticket_id:
                self.bypass.clear()
            return Choice(ticket, worker)
        return None

    def _count(
        self,
        ticket: Ticket,
        order: list[tuple[Ticket, bool]],
        *,
        is_contested: bool,
        is_floor: bool,
    ) -> None:
        """The floor's account: its share of every dispatch while both bands wait."""
        if is_contested:
            self.credit = min(self.credit + self.floor_permille, CREDIT + self.floor_permille)
            if is_floor and ticket.order_band is Band.BATCH:
                self.credit -= CREDIT

    def _fits_any(
        self, order: list[tuple[Ticket, bool]], rooms: Mapping[str, WorkerRoom], now_ms: int
    ) -> bool:
        return any(
            self._worker(ticket, rooms, as_batch=as_batch, now_ms=now_ms) is not None
            for ticket, as_batch in order
        )

    def _worker(
        self, ticket: Ticket, rooms: Mapping[str, WorkerRoom], *, as_batch: bool, now_ms: int
    ) -> str | None:
        """The least full worker that takes it; one that is kept for another does not."""
        kept = self.bypass.worker if ticket.id != self.bypass.ticket_id else ""
        taking = [
            room
            for room in rooms.values()
            if room.id != kept and room.takes(ticket, as_batch=as_batch, now_ms=now_ms)
        ]
        return min(taking, key=lambda room: (room.fill, room.id)).id if taking else None


def take_back(
    waiting: Iterable[Ticket],
    places: Iterable[Place],
    rooms: Mapping[str, WorkerRoom],
    now_ms: int,
) -> list[Place]:
    """Places of batch that must be given back so that interactive requests which wait can be
    granted: such as have not sent a token, the newest first, as few as it takes. What was asked
    back before counts as free already."""
    held = sorted(places, key=lambda place: (-place.granted_ms, place.ticket.id))
    left = {name: copy(room) for name, room in rooms.items()}
    for place in held:
        if place.state is PlaceState.TAKEN_BACK and place.worker in left:
            left[place.worker].remove(place.ticket)
    chosen: list[Place] = []
    for ticket in _first(waiting, TAKEN_BACK_FOR):
        if ticket.band is not Band.INTERACTIVE:
            continue
        plans = [
            plan
            for name in sorted(left)
            if (plan := _plan(ticket, left[name], held, chosen, now_ms)) is not None
        ]
        if not plans:
            return chosen
        fewest = min(plans, key=lambda plan: len(plan[1]))
        room, places_back = fewest
        for place in places_back:
            room.remove(place.ticket)
        room.add(ticket)
        chosen += places_back
    return chosen


def _plan(
    ticket: Ticket, room: WorkerRoom, held: list[Place], chosen: list[Place], now_ms: int
) -> tuple[WorkerRoom, list[Place]] | None:
    """What must go from this worker so that it takes the request; None where all is not enough."""
    after, plan = copy(room), list[Place]()
    candidates = (
        place for place in held
        if place.worker == room.id and _may_go(place) and place not in chosen
    )  # fmt: skip
    while not after.takes(ticket, as_batch=False, now_ms=now_ms):
        place = next(candidates, None)
        if place is None:
            return None
        after.remove(place.ticket)
        plan.append(place)
    return room, plan


def _may_go(place: Place) -> bool:
    return (
        place.state in (PlaceState.GRANTED, PlaceState.HELD)
        and place.ticket.band is Band.BATCH
        and place.ticket.taken_back < TAKEN_BACK_MAX
    )


def _batch_order(batch: Line, now_ms: int) -> Iterator[Ticket]:
    """The promoted first; of those that are not, whose turn it is."""
    yield from batch.promoted(now_ms)
    yield from (ticket for ticket in batch.candidates() if not ticket.is_promoted(now_ms))


def _first(tickets: Iterable[Ticket], count: int) -> Iterator[Ticket]:
    for _, ticket in zip(range(count), tickets, strict=False):
        yield ticket


def _is_open(room: WorkerRoom, now_ms: int) -> bool:
    """Whether anything at all may be sent to it."""
    return room.well_until_ms > now_ms and (
        room.running == 0 or (room.running < room.sequences_max and room.tokens < room.tokens_max)
    )


def _is_well(room: WorkerRoom | None, now_ms: int) -> bool:
    return room is not None and room.well_until_ms > now_ms
