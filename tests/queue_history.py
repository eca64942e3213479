"""A pool's queue under any history, with everything that must hold looked at after each step and
at each grant, by rules written down a second time and without regard to speed."""

from collections import Counter
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from queue_examples import TTL_MS
from queue_turns import Turns

from gateway.domain.queue.bypass import Bypass
from gateway.domain.queue.capacity import WorkerRoom
from gateway.domain.queue.fairness import UNITS
from gateway.domain.queue.lines import Line
from gateway.domain.queue.order import Choice
from gateway.domain.queue.pool import Pool
from gateway.domain.queue.tickets import Answer, Band, Granted, PlaceState, Ticket

START_MS = 1_000_000


class History:
    """A pool, what was asked of it, and who was told of what."""

    def __init__(self, floor_permille: int) -> None:
        self.pool = Pool(TTL_MS, floor_permille)
        self.turns = {band: Turns(line.counters) for band, line in self.pool.lines.items()}
        self.now_ms = START_MS
        self.heard_ms: dict[str, int] = {}
        """When the gateway of each request spoke of it last."""
        self.tickets: dict[str, Ticket] = {}
        self.contested = self.floor_grants = self.turns_checked = 0
        self._choose = self.pool.order.choose
        self.pool.order.choose = self._watched  # type: ignore[method-assign]

    def step(self, name: str, *args: Any, heard: str = "", **named: Any) -> Any:
        """One step of the pool at this time, repeated; what must hold is looked at."""
        if heard:
            self.heard_ms[heard] = self.now_ms
        before = set(self.pool.places)
        answer: Any = getattr(self.pool, name)(*args, **named, now_ms=self.now_ms)
        knows = name == "resume" or (name == "enter" and isinstance(answer, Granted))
        asked = args[0].id if knows else ""
        self._check_told(before, asked)
        self.check()
        if name != "unpark":
            self._check_repeated(name, args, named)
        return answer

    def enter(self, ticket: Ticket, max_queued: int) -> Answer:
        """It asks for a place."""
        self.tickets[ticket.id] = ticket
        answer: Answer = self.step("enter", ticket, heard=ticket.id, max_queued=max_queued)
        return answer

    def known(self) -> list[str]:
        """Ids of all that wait or hold a place."""
        return sorted({*self.pool.waiting, *self.pool.places})

    def wait(self, ms: int, alive: set[str]) -> None:
        """Time passes; these gateways renew what is theirs, as often as they should."""
        while ms > 0:
            portion = min(ms, TTL_MS // 3)
            ms -= portion
            self.now_ms += portion
            for name in self.known():
                if self.tickets[name].gateway in alive:
                    self.step("renew", name, heard=name)
            self.step("tick")

    def check(self) -> None:
        """What holds after every step."""
        pool = self.pool
        assert not set(pool.waiting) & set(pool.places)
        for name in self.known():
            assert self.heard_ms[name] + TTL_MS > self.now_ms, "a dead gateway's is still here"
        for waits in pool.waiting.values():
            assert waits.ticket.deadline_ms > self.now_ms
        for room in pool.rooms.values():
            here = [place for place in pool.places.values() if place.worker == room.id]
            assert room.running == sum(place.ticket.sequences for place in here)
            assert room.tokens == sum(place.ticket.need_tokens for place in here)
            assert room.asked_back == sum(p.state is PlaceState.TAKEN_BACK for p in here)
        for band, line in pool.lines.items():
            self._check_line(band, line)
        for band, bypass in pool.order.bypass.items():
            if bypass.ticket_id:
                assert pool.waiting[bypass.ticket_id].ticket.order_band is band
            else:
                assert (bypass.worker, bypass.tokens) == ("", 0)

    def end(self) -> None:
        """Every gateway dies: nothing is left."""
        self.now_ms += TTL_MS
        self.step("tick")
        assert not self.known()
        for room in self.pool.rooms.values():
            assert (room.running, room.tokens, room.asked_back) == (0, 0, 0)
        for line in self.pool.lines.values():
            assert (line.counters.active, line.waiting, line.running, line.weights) == ({},) * 4

    def _check_line(self, band: Band, line: Line) -> None:
        waiting = [
            each.ticket
            for each in self.pool.waiting.values()
            if not each.is_parked and each.ticket.order_band is band
        ]
        assert sorted(t.id for ts in line.waiting.values() for t in ts) == sorted(
            each.id for each in waiting
        )
        for tickets in line.waiting.values():
            assert tickets == sorted(tickets, key=lambda each: (each.deadline_ms, each.id))
        places = [p for p in self.pool.places.values() if p.ticket.order_band is band]
        assert line.running == dict(Counter(place.ticket.tenant for place in places))
        assert line.counters.waits == set(line.waiting)
        assert set(line.counters.active) == {*line.waiting, *line.running}
        assert not set(line.counters.idle) & set(line.counters.active)
        least = line.counters.floor - line.counters.expected
        assert all(each >= least for each in line.counters.idle.values())
        expected = sum(p.ticket.cost * UNITS // p.ticket.weight for p in places)
        assert line.counters.expected == expected
        assert set(line.counters.newcomers) <= line.counters.waits

    def _check_told(self, before: set[str], asked: str) -> None:
        """Whoever was granted was told exactly once: by a message, or by the reply."""
        told = Counter(each.ticket_id for each in self.pool.messages if each.is_grant)
        self.pool.messages.clear()
        if asked and asked not in before:
            assert told[asked] == 0
            told[asked] = 1
        assert set(told.values()) <= {1}
        new = set(self.pool.places) - before
        assert new <= set(told)

    def _check_repeated(self, name: str, args: tuple[Any, ...], named: dict[str, Any]) -> None:
        """A step whose reply was lost is made again: nothing more happens."""
        if name == "give_back" or (name == "enter" and args[0].id not in self.known()):
            return
        self.pool.tick(now_ms=self.now_ms)
        before = deepcopy(state(self.pool))
        getattr(self.pool, name)(*args, **named, now_ms=self.now_ms)
        assert state(self.pool) == before
        self.pool.messages.clear()
        self.check()

    def _watched(
        self, interactive: Line, batch: Line, rooms: Mapping[str, WorkerRoom], now_ms: int
    ) -> Choice | None:
        waiting = [t for line in (interactive, batch) for ts in line.waiting.values() for t in ts]
        bypass = deepcopy(self.pool.order.bypass)
        choice = self._choose(interactive, batch, rooms, now_ms)
        if choice is None:
            for each in waiting:
                takers = self._takers(each, waiting, self.pool.order.bypass)
                assert not takers, "capacity idles"
            return None
        self._check_ceilings(choice)
        self._check_turn(choice, waiting, bypass)
        if len({each.order_band for each in waiting}) == len(Band):
            self.contested += 1
            self.floor_grants += choice.is_floor
            share = self.pool.floor_permille * self.contested / 1_000
            assert self.floor_grants <= share + 1
        return choice

    def _takers(
        self, ticket: Ticket, waiting: list[Ticket], bypasses: dict[Band, Bypass]
    ) -> list[str]:
        """Workers that might take it now, none is kept for another."""
        is_batch = ticket.order_band is Band.BATCH
        is_contested = any(each.order_band is Band.INTERACTIVE for each in waiting)
        kept = {
            bypass.worker
            for band, bypass in bypasses.items()
            if bypass.ticket_id != ticket.id and band <= ticket.order_band
        }
        return [
            room.id
            for room in self.pool.rooms.values()
            if room.id not in kept
            and room.well_until_ms > self.now_ms
            and not (is_batch and is_contested and room.asked_back)
            and (
                room.running == 0
                or (
                    room.running + ticket.sequences
                    <= (room.batch_max if is_batch else room.sequences_max)
                    and room.tokens + ticket.need_tokens <= room.tokens_max
                )
            )
        ]

    def _check_ceilings(self, choice: Choice) -> None:
        room, ticket = self.pool.rooms[choice.worker], choice.ticket
        is_batch = ticket.order_band is Band.BATCH and not choice.is_floor
        assert room.well_until_ms > self.now_ms
        if room.running:
            most = room.batch_max if is_batch else room.sequences_max
            assert room.running + ticket.sequences <= most
            assert room.tokens + ticket.need_tokens <= room.tokens_max

    def _check_turn(
        self,
        choice: Choice,
        waiting: list[Ticket],
        bypasses: dict[Band, Bypass],
    ) -> None:
        """Nobody whose turn comes before had room, as things were before this grant."""
        chosen, band = choice.ticket, choice.ticket.order_band
        turn = self._turn(chosen)
        for each in waiting:
            if each.id == chosen.id or not self._takers(each, waiting, bypasses):
                continue
            if each.order_band is band:
                self.turns_checked += each.tenant != chosen.tenant
                assert self._turn(each) > turn, f"{each.id} goes before {chosen.id}"
            elif each.order_band < band:
                assert choice.is_floor, f"batch {chosen.id} goes before {each.id}"

    def _turn(self, ticket: Ticket) -> tuple[Any, ...]:
        if ticket.is_promoted(self.now_ms):
            return (0, ticket.promote_ms, ticket.id)
        turn = self.turns[ticket.order_band].of(ticket.tenant)
        return (1, turn, ticket.deadline_ms, ticket.id)


def state(pool: Pool) -> tuple[Any, ...]:
    """All that a pool knows, but what it has told."""
    order = pool.order
    return (
        pool.lines,
        pool.waiting,
        pool.places,
        pool.rooms,
        order.credit,
        order.bypass,
        pool.speed,
    )
