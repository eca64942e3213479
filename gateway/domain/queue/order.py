"""Which request is granted next, on which worker, and what is taken back for it (INV-8, INV-10)."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from itertools import takewhile

from gateway.domain.queue.bypass import KEPT_MS, Bypass
from gateway.domain.queue.capacity import WorkerRoom
from gateway.domain.queue.lines import Line
from gateway.domain.queue.tickets import TAKEN_BACK_MAX, Band, Place, PlaceState, Ticket

CREDIT = 1_000
"""Of the floor: one dispatch of batch."""
LOOKED_AT = 128
"""Tickets of a band for which room is looked for; whoever is behind them waits."""
TAKEN_BACK_FOR = 8
"""At most so many waiting interactive requests are looked at when batch is taken back."""


@dataclass(frozen=True)
class Choice:
    """The next grant."""

    ticket: Ticket
    worker: str
    is_floor: bool
    """It is batch, and took interactive's turn."""


class Order:
    """Chooses. `floor_permille` is batch's share of dispatches while interactive waits."""

    def __init__(self, floor_permille: int) -> None:
        self.floor_permille = floor_permille
        self.credit = 0
        self.bypass = {band: Bypass() for band in Band}

    def left(self, ticket_id: str, now_ms: int) -> None:
        """It waits no more."""
        for bypass in self.bypass.values():
            if bypass.ticket_id == ticket_id:
                bypass.clear(now_ms)

    def is_due(self, interactive: Line, batch: Line) -> bool:
        """Whether it is the floor's turn."""
        return self.credit >= CREDIT and len(interactive) > 0 and len(batch) > 0

    def kept_from(self, ticket: Ticket, *, as_batch: bool) -> set[str]:
        """Workers that are kept for others. Those kept for batch are from batch, and from all while
        it is the floor's turn: but for who has the same kept for it, so that none waits for the
        other."""
        first, second = self.bypass[Band.INTERACTIVE], self.bypass[Band.BATCH]
        kept = set[str]()
        if first.ticket_id != ticket.id:
            kept.add(first.worker)
        elif first.worker == second.worker:
            return kept
        if as_batch and second.ticket_id != ticket.id:
            kept.add(second.worker)
        return kept

    def choose(
        self, interactive: Line, batch: Line, rooms: Mapping[str, WorkerRoom], now_ms: int
    ) -> Choice | None:
        """The next grant, or None where nobody who waits has room. Counts it as made."""
        if not any(_is_open(room, now_ms) for room in rooms.values()):
            return None
        self._let_go(rooms, now_ms)
        first = list(_first(interactive.candidates(), LOOKED_AT))
        second = list(_first(_batch_order(batch, now_ms), LOOKED_AT))
        is_contested = bool(first and second)
        turn = None
        if is_contested and self.credit >= CREDIT:
            fits = (each for each in first if self._worker(each, rooms, now_ms) is not None)
            turn = next(fits, None)
        is_floor = turn is not None
        if is_floor:
            second = self._floors_turn(second, batch, rooms, now_ms)
        skipped: list[Ticket] = []
        for ticket in second + first if is_floor else first + second:
            is_batch = ticket.order_band is Band.BATCH
            worker = self._worker(
                ticket,
                rooms,
                now_ms,
                as_batch=is_batch and not is_floor,
                is_contested=is_contested,
                is_floor=is_floor,
            )
            if worker is None:
                skipped.append(ticket)
                continue
            if is_contested:
                self.credit = min(self.credit + self.floor_permille, 2 * CREDIT)
                self.credit -= CREDIT if is_floor and is_batch else 0
            if turn is not None and is_batch:
                # Whose turn it took is overtaken: it waits for no second one.
                skipped.append(turn)
            self._passed(skipped, ticket, rooms, now_ms, is_floor=is_floor and is_batch)
            return Choice(ticket, worker, is_floor and is_batch)
        return None

    def _floors_turn(
        self, second: list[Ticket], batch: Line, rooms: Mapping[str, WorkerRoom], now_ms: int
    ) -> list[Ticket]:
        """Whose the floor's turn is: of all batch, or of the one alone that a worker is kept for.
        One is, against interactive too, where none of batch has room, or where so much of the floor
        went past the first that this turn is its."""
        bypass, first = self.bypass[Band.BATCH], self.bypass[Band.INTERACTIVE]
        if not bypass.worker:
            has_none = (self._worker(each, rooms, now_ms) is None for each in second)
            skipped = [each for each, _ in zip(second, takewhile(bool, has_none), strict=False)]
            if skipped:
                well = [room for room in rooms.values() if _is_well(room, now_ms)]
                is_none = len(skipped) == len(second)
                bypass.due(skipped, well, now_ms, but_for=first.worker, is_none=is_none)
        if not bypass.worker:
            return second
        return [each for each in batch.of_all() if each.id == bypass.ticket_id]

    def _let_go(self, rooms: Mapping[str, WorkerRoom], now_ms: int) -> None:
        """A worker that is not well is kept for nobody, and none for ever."""
        for bypass in self.bypass.values():
            if bypass.worker and not _is_well(rooms.get(bypass.worker), now_ms):
                bypass.lose()
            if bypass.worker and bypass.kept_ms + KEPT_MS <= now_ms:
                bypass.clear(now_ms)

    def _passed(
        self,
        skipped: list[Ticket],
        ticket: Ticket,
        rooms: Mapping[str, WorkerRoom],
        now_ms: int,
        *,
        is_floor: bool,
    ) -> None:
        """Whoever waits in a band is overtaken by its own and by a lower one. For batch that the
        floor's went past a worker is kept when it is the floor's turn again: until then interactive
        would fill it."""
        self.left(ticket.id, now_ms)
        well = [room for room in rooms.values() if _is_well(room, now_ms)]
        for band, bypass in self.bypass.items():
            if band <= ticket.order_band:
                of_band = [each for each in skipped if each.order_band is band]
                keeps = not (is_floor and band is Band.BATCH)
                bypass.passed(of_band, ticket, well, now_ms, keeps=keeps)

    def _worker(
        self,
        ticket: Ticket,
        rooms: Mapping[str, WorkerRoom],
        now_ms: int,
        *,
        as_batch: bool = False,
        is_contested: bool = False,
        is_floor: bool = False,
    ) -> str | None:
        """The least full worker that takes it. One that is kept for another does not; nor, for
        batch, one on which room is being made for interactive requests that wait."""
        kept = self.kept_from(ticket, as_batch=as_batch or is_floor)
        taking = [
            room
            for room in rooms.values()
            if room.id not in kept
            and room.takes(ticket, as_batch=as_batch, now_ms=now_ms)
            and not (as_batch and is_contested and room.asked_back)
        ]
        return min(taking, key=lambda room: (room.fill, room.id)).id if taking else None


def take_back(
    waiting: Iterable[Ticket],
    places: Iterable[Place],
    rooms: Mapping[str, WorkerRoom],
    kept_from: Callable[[Ticket], Collection[str]],
    now_ms: int,
) -> list[Place]:
    """Places of batch that must be given back so that interactive requests which wait can be
    granted: such as have not sent a token, the newest first, as few as it takes. What was asked
    back before counts as free already; `kept_from` says which workers are kept for others."""
    held = list(places)
    movable = [place for place in held if _may_go(place, now_ms)]
    if not movable:
        return []
    movable.sort(key=lambda place: (-place.granted_ms, place.ticket.id))
    left = {name: copy(room) for name, room in rooms.items()}
    for place in held:
        if place.state is PlaceState.TAKEN_BACK and place.worker in left:
            left[place.worker].remove(place.ticket)
    chosen: list[Place] = []
    for ticket in _first(waiting, TAKEN_BACK_FOR):
        if ticket.band is not Band.INTERACTIVE:
            continue
        kept = kept_from(ticket)
        plans = [
            plan
            for name in sorted(left)
            if name not in kept
            and (plan := _plan(ticket, left[name], movable, chosen, now_ms)) is not None
        ]
        if not plans:
            continue
        fewest = min(plans, key=lambda plan: len(plan[1]))
        room, places_back = fewest
        for place in places_back:
            room.remove(place.ticket)
        room.add(ticket)
        chosen += places_back
    return chosen


def _plan(
    ticket: Ticket, room: WorkerRoom, movable: list[Place], chosen: list[Place], now_ms: int
) -> tuple[WorkerRoom, list[Place]] | None:
    """What must go from this worker so that it takes the request; None where all is not enough."""
    after, plan = copy(room), list[Place]()
    candidates = (place for place in movable if place.worker == room.id and place not in chosen)
    while not after.takes(ticket, as_batch=False, now_ms=now_ms):
        place = next(candidates, None)
        if place is None:
            return None
        after.remove(place.ticket)
        plan.append(place)
    return room, plan


def _may_go(place: Place, now_ms: int) -> bool:
    """What would miss its deadline if it waited again may stay, and what is the floor's."""
    return (
        place.state in (PlaceState.GRANTED, PlaceState.HELD)
        and place.ticket.band is Band.BATCH
        and place.ticket.taken_back < TAKEN_BACK_MAX
        and place.ticket.promote_ms > now_ms
        and not place.is_floor
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
