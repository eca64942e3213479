"""Who is overtaken since no worker has room for it, and the worker that is kept for it.

A worker that is kept drains, and what is free on it idles meanwhile. That is bounded by time, not
by what the request costs: one with more sequences than a worker's ceiling may cost next to nothing
and yet fits an empty worker only. `width` is the part of a worker that a request needs, at most
all; while it does not fit, no larger part idles. After a worker was kept for `d` ms, in a pool of
`w` that are well, none is kept for a wide request, one with `10 · width > w`, for

    d · (10 · width / w - 1) ms,

whoever it is of, served or not. So of all that the pool can do at most a tenth (1 / IDLED_AT_MOST)
idles for wide requests, over any time that ends with a rest. A narrow one is kept a worker at any
time: what that idles is less than a tenth by itself.

A worker is kept for KEPT_MS at most; who was not granted by then is overtaken again. So a wide
request is served, at a bounded rate, also by a pool that is always full, where a worker's streams
end within KEPT_MS; where they do not, it is served when there is a gap.

All this is of each band by itself: interactive does not wait for what was kept for batch.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from gateway.domain.queue.capacity import WorkerRoom
from gateway.domain.queue.tickets import Band, Ticket

KEPT_MS = 30_000
"""A worker is kept so long for one request, at most: a stream on it may run for half an hour, and
interactive may fill one that is kept for batch all the while."""
IDLED_AT_MOST = 10
"""What is kept idles at most one part in so many of what the pool can do."""


@dataclass
class Bypass:
    """Of one band: the first that no worker has room for, while others are granted past it. Once it
    was overtaken by lower band, or by its own band for as much as it costs itself, a worker is kept
    for it, so that it is not overtaken for ever. Nobody else's turn comes before it is granted or
    gone; but a narrow one takes the turn of a wide one for which no worker may be kept yet."""

    ticket_id: str = ""
    tokens: int = 0
    """Weighted, that were granted past it."""
    worker: str = ""
    kept_ms: int = 0
    """When the worker began to be kept."""
    rest_permille: int = 0
    """For how long none is kept afterwards, in 1/1,000 of how long this one is."""
    rests_until_ms: int = 0
    """Until then none is kept for a wide request."""

    def clear(self, now_ms: int) -> None:
        """Nobody is overtaken."""
        if self.worker:
            # For longer it was only kept while it was full: nobody looks then.
            kept_ms = min(now_ms - self.kept_ms, KEPT_MS)
            rests_until_ms = now_ms + kept_ms * self.rest_permille // 1_000
            self.rests_until_ms = max(self.rests_until_ms, rests_until_ms)
        self.ticket_id, self.tokens, self.rest_permille = "", 0, 0
        self.lose()

    def lose(self) -> None:
        """The worker is not well. That is nobody's fault: another may be kept at once."""
        self.worker, self.kept_ms = "", 0

    def passed(
        self,
        skipped: Sequence[Ticket],
        by: Ticket,
        rooms: Collection[WorkerRoom],
        now_ms: int,
        *,
        keeps: bool = True,
    ) -> None:
        """`by` is granted past these, who have no room. `rooms` are the workers that are well.
        `keeps`: one of them may be kept from now on; else not before it is `due`."""
        rests = _rests(skipped, rooms)
        is_resting = not self.worker and now_ms < self.rests_until_ms
        first = self._whose_turn(skipped, rests, is_resting=is_resting)
        if first is None:
            return
        self.tokens += by.cost
        if self.worker:
            return
        self.rest_permille = rests[first.id]
        is_enough = by.order_band > first.order_band or self.tokens >= first.cost
        if keeps and is_enough and not (is_resting and self.rest_permille):
            self.worker, self.kept_ms = _emptiest(rooms).id, now_ms

    def due(
        self,
        skipped: Sequence[Ticket],
        rooms: Collection[WorkerRoom],
        now_ms: int,
        *,
        but_for: str,
        is_none: bool,
    ) -> None:
        """It is this band's turn, and these, who go first in it, have no room. A worker, though not
        the one `but_for`, is kept for whose turn it is of them: where `is_none` of the band has
        room, or where as much went past it as it costs."""
        free = [room for room in rooms if room.id != but_for]
        if not free:
            return
        rests = _rests(skipped, rooms)
        is_resting = now_ms < self.rests_until_ms
        if is_none:
            first = self._whose_turn(skipped, rests, is_resting=is_resting)
        else:
            first = next((each for each in skipped if each.id == self.ticket_id), None)
            first = first if first is not None and self.tokens >= first.cost else None
        if first is not None:
            self.rest_permille = rests[first.id]
            if not (is_resting and self.rest_permille):
                self.worker, self.kept_ms = _emptiest(free).id, now_ms

    def _whose_turn(
        self, skipped: Sequence[Ticket], rests: Mapping[str, int], *, is_resting: bool
    ) -> Ticket | None:
        """Of those that are overtaken now."""
        first = next((each for each in skipped if each.id == self.ticket_id), None)
        is_wide = self.rest_permille if first is None else rests[first.id]
        if is_resting and (is_wide or not self.ticket_id):
            narrow = next((each for each in skipped if not rests[each.id]), None)
            if narrow is not None:
                self.tokens, first = 0, narrow
        if first is None and not self.ticket_id and skipped:
            first = skipped[0]
        if first is not None:
            self.ticket_id = first.id
        return first


def _emptiest(rooms: Collection[WorkerRoom]) -> WorkerRoom:
    return min(rooms, key=lambda room: (room.tokens, room.id))


def _rests(tickets: Sequence[Ticket], rooms: Collection[WorkerRoom]) -> dict[str, int]:
    """By ticket, on the emptiest of these."""
    emptiest = _emptiest(rooms)
    return {each.id: _rest_permille(each, emptiest, len(rooms)) for each in tickets}


def _rest_permille(ticket: Ticket, room: WorkerRoom, workers: int) -> int:
    """For how long no worker is kept after this one was kept for the request, in 1/1,000 of that
    time. 0: it is narrow."""
    width = room.width_permille(ticket, as_batch=ticket.order_band is Band.BATCH)
    return max(0, IDLED_AT_MOST * width // workers - 1_000)
