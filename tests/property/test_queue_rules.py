"""The queue's rules under any history: INV-8 and INV-10 at every grant, rooms that equal places,
nothing told twice or never, no step that means more when it is repeated, nothing left at the end.

INV-10's exceptions are the ones that `queue_history` leaves out: a worker that is kept for one who
was overtaken, and, for batch, one on which room is being made for interactive requests."""

import random
from dataclasses import replace

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from queue_examples import ticket
from queue_history import History

from gateway.domain.queue.capacity import WorkerRoom
from gateway.domain.queue.tickets import Band, Parked, QueueFull, Ticket

PICK = st.integers(0, 1 << 16)
WEIGHTS = {"a": 1, "b": 1, "c": 2, "d": 4}
LOTS = ("k1", "k2")
CEILING = st.integers(1, 6)


class AnyHistory(RuleBasedStateMachine):
    """Requests, gateways and workers that do whatever they may."""

    @initialize(floor=st.sampled_from([0, 50, 300, 1_000]), sequences=CEILING, batch=CEILING)
    def begin(self, floor: int, sequences: int, batch: int) -> None:
        """One worker is there."""
        self.history = History(floor)
        self.entered = 0
        self.put_worker("w1", sequences, batch, 100)

    @rule(
        name=st.sampled_from(["w1", "w2", "w3"]),
        sequences=CEILING,
        batch=CEILING,
        tokens=st.sampled_from([30, 100, 10_000]),
    )
    def put_worker(self, name: str, sequences: int, batch: int, tokens: int) -> None:
        """A worker's ceilings change, or it is well again."""
        until_ms = self.history.now_ms + 3_000
        room = WorkerRoom(name, sequences, min(batch, sequences), tokens, until_ms)
        self.history.step("report", room)

    @rule(
        tenant=st.sampled_from(sorted(WEIGHTS)),
        lot=st.sampled_from(LOTS),
        band=st.sampled_from(Band),
        sequences=st.sampled_from([1, 1, 1, 2, 3]),
        need=st.sampled_from([1, 5, 20, 60, 120]),
        wait_ms=st.sampled_from([0, 500, 4_000, 30_000, 600_000]),
        promoted=st.booleans(),
        gateway=st.sampled_from(["g1", "g2"]),
        max_queued=st.sampled_from([0, 3, 100, 100]),
    )
    def enter(
        self,
        *,
        tenant: str,
        lot: str,
        band: Band,
        sequences: int,
        need: int,
        wait_ms: int,
        promoted: bool,
        gateway: str,
        max_queued: int,
    ) -> None:
        """Somebody asks for a place."""
        self.entered += 1
        now_ms = self.history.now_ms
        asked = ticket(
            f"{self.entered:03}",
            tenant,
            lot=lot,
            band=band,
            sequences=sequences,
            need_tokens=need,
            cost=need + sequences,
            weight=WEIGHTS[tenant],
            gateway=gateway,
            entered_ms=now_ms,
            deadline_ms=now_ms + wait_ms,
            promote_ms=now_ms + wait_ms // 2 if promoted else now_ms + wait_ms,
        )
        self.history.enter(asked, max_queued)

    def someone(self, pick: int) -> str:
        """One that waits or holds a place."""
        known = self.history.known()
        return known[pick % len(known)]

    def some_place(self, pick: int) -> str:
        """One that holds a place, where there is one."""
        places = sorted(self.history.pool.places)
        return places[pick % len(places)] if places else self.someone(pick)

    @precondition(lambda self: self.history.known())
    @rule(pick=PICK)
    def take_up(self, pick: int) -> None:
        """A message arrived."""
        name = self.some_place(pick)
        self.history.step("take_up", name, heard=name)

    @precondition(lambda self: self.history.known())
    @rule(pick=PICK)
    def begin_to_answer(self, pick: int) -> None:
        """A first token."""
        name = self.some_place(pick)
        self.history.step("began", name, heard=name)

    @precondition(lambda self: self.history.known())
    @rule(pick=PICK, actual=st.sampled_from([None, 0, 3, 40, 300]), of_places=st.booleans())
    def leave(self, pick: int, actual: int | None, of_places: bool) -> None:
        """One ends, or goes."""
        name = self.some_place(pick) if of_places else self.someone(pick)
        self.history.step("leave", name, actual_cost=actual)
        assert name not in self.history.known()

    @precondition(lambda self: self.history.known())
    @rule(pick=PICK)
    def give_back(self, pick: int) -> None:
        """One that was asked back, where there is one."""
        asked = [n for n, p in self.history.pool.places.items() if p.state.name == "TAKEN_BACK"]
        name = sorted(asked)[pick % len(asked)] if asked else self.someone(pick)
        self.history.step("give_back", name, heard=name)

    @precondition(lambda self: self.history.known())
    @rule(pick=PICK, max_queued=st.sampled_from([0, 2, 100, 100]))
    def park(self, pick: int, max_queued: int) -> None:
        """Its tenant has no room."""
        name = self.some_place(pick)
        tenant, held = self.history.tickets[name].tenant, name in self.history.pool.places
        answer = self.history.step("park", name, heard=name, max_queued=max_queued)
        if isinstance(answer, QueueFull):
            assert answer.waiting >= max_queued
            assert name not in self.history.known()
        elif held and isinstance(answer, Parked):
            waiting = self.history.pool.waiting.values()
            assert sum(each.ticket.tenant == tenant for each in waiting) <= max_queued

    @rule(tenant=st.sampled_from(sorted(WEIGHTS)), lot=st.sampled_from(LOTS))
    def unpark(self, tenant: str, lot: str) -> None:
        """A lot may have room again: its earliest waits for a place, and nobody else of it."""
        parked = {each.ticket.id for each in self.history.pool.waiting.values() if each.is_parked}
        self.history.step("unpark", tenant, lot)
        waiting = self.history.pool.waiting.values()
        released = parked - {each.ticket.id for each in waiting if each.is_parked}
        of_lot = [
            ticket
            for ticket in map(self.history.tickets.__getitem__, parked)
            if (ticket.tenant, ticket.lot) == (tenant, lot)
        ]
        first = min(of_lot, key=lambda each: (each.order_band, each.order), default=None)
        assert released == (set() if first is None else {first.id})

    @precondition(lambda self: self.history.known())
    @rule(pick=PICK, worker=st.sampled_from(["w1", "w2", "w9"]))
    def move(self, pick: int, worker: str) -> None:
        """Its worker failed."""
        self.history.step("move", self.some_place(pick), worker)

    @rule(pick=PICK, worker=st.sampled_from(["w1", "w9"]), began=st.booleans())
    def resume(self, pick: int, worker: str, began: bool) -> None:
        """A store that forgot it is told of what runs; or one that did not."""
        known = self.history.known()
        if known and pick % 2:
            running: Ticket = self.history.tickets[known[pick % len(known)]]
        else:
            self.entered += 1
            running = replace(ticket(f"{self.entered:03}", "a"), deadline_ms=self.history.now_ms)
            self.history.tickets[running.id] = running
        self.history.step("resume", running, worker, began=began, heard=running.id)

    @rule(
        ms=st.one_of(st.integers(0, 2_000), st.integers(0, 40_000)),
        alive=st.sets(st.sampled_from(["g1", "g2"])),
    )
    def wait(self, ms: int, alive: set[str]) -> None:
        """Time passes, and gateways may be dead meanwhile."""
        self.history.wait(ms, alive)

    def teardown(self) -> None:
        """Whatever went before, nothing is left."""
        if hasattr(self, "history"):
            self.history.end()


TestAnyHistory = AnyHistory.TestCase
TestAnyHistory.settings = settings(max_examples=120, stateful_step_count=50, deadline=None)


@pytest.mark.parametrize("seed", range(4))
def test_turns_where_many_wait(seed: int) -> None:
    """Of tenants that come and go, each granted one is the one whose turn it is: of requests of one
    size on a worker that is always full, so who has no room excuses nothing."""
    chance = random.Random(seed)  # noqa: S311 - a schedule
    history = History(floor_permille=100)
    history.step("report", WorkerRoom("w1", 3, 3, 10_000, history.now_ms + 3_600_000))
    for number in range(250):
        name = f"{number:03}"
        places = sorted(history.pool.places)
        waiting = sorted(history.pool.waiting)
        asked = [n for n in places if history.pool.places[n].state.name == "TAKEN_BACK"]
        what = chance.random()
        if asked and what < 0.5:
            history.step("give_back", asked[0], heard=asked[0])
        elif places and what < 0.05:
            history.step("park", places[0], heard=places[0], max_queued=100)
        elif waiting and what < 0.1:
            gone = chance.choice(waiting)
            history.step("leave", gone, actual_cost=None)
        elif places and (what < 0.4 or len(waiting) > 14):
            gone = chance.choice(places)
            history.step("leave", gone, actual_cost=chance.choice([0, 1, 40]))
        elif what < 0.5:
            history.step("unpark", chance.choice("abcd"), LOTS[0])
        else:
            tenant = chance.choice("abcdef")
            asks = ticket(
                name,
                tenant,
                lot=LOTS[0],
                band=chance.choice([Band.INTERACTIVE, Band.INTERACTIVE, Band.BATCH]),
                cost=chance.choice([1, 10, 40, 200]),
                weight=WEIGHTS.get(tenant, 1),
                entered_ms=history.now_ms,
            )
            history.enter(asks, 100)
    assert history.turns_checked > 100
