"""Drives the specification of a pool's queue and a real store side by side with the same steps, and
compares every answer, every message and what is then to be seen."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from copy import copy
from typing import Any, TypeVar
from uuid import uuid4

import hypothesis.strategies as st
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from queue_draws import LOTS, ROOM, WISHES, WORKERS
from queue_specified import Ear, PoolClock, forget_pool, specified_ticket, specified_use

from gateway.adapters.pool_queue import RedisPoolQueue
from gateway.adapters.redis import RedisClient
from gateway.domain.queue.capacity import WorkerRoom
from gateway.domain.queue.pool import Pool
from gateway.domain.queue.tickets import Band
from gateway.serving.queue_ports import Run, Wish

START_MS = 1_800_000_000_000
TTL_MS = 10_000
GATEWAYS = ("gw-a", "gw {b}:*")
Reply = TypeVar("Reply")
_RUN = uuid4().hex
_pools = itertools.count()

ROOMS = st.lists(ROOM, min_size=1, max_size=3, unique_by=lambda room: str(room["id"]))
GATEWAY = st.sampled_from(GATEWAYS)
PICK = st.integers(0, 30)


class QueueParity(RuleBasedStateMachine):
    """On one clock that may jump. `connect` gives a client of the store, `hear` an ear at it,
    `flush_scripts` makes its servers forget every script, `loop` is where all run."""

    connect: Callable[[], RedisClient]
    hear: Callable[[tuple[str, ...]], Awaitable[Ear]]
    flush_scripts: Callable[[], Awaitable[None]]
    loop: asyncio.AbstractEventLoop
    ear: Ear
    url: str

    def __init__(self) -> None:
        super().__init__()
        number = next(_pools)
        self.name = f"org/{_RUN}}} {number}"
        self.clock = PoolClock(START_MS)
        self.wishes: dict[str, tuple[Wish, str]] = {}
        self.redis = type(self).connect()

    @initialize(floor=st.sampled_from([0, 50, 300, 1_000]), rooms=ROOMS)
    def begin(self, floor: int, rooms: list[dict[str, Any]]) -> None:
        self.floor = floor
        self.pool = Pool(TTL_MS, floor_permille=floor)
        self.queues = {
            gateway: RedisPoolQueue(
                self.redis, url=self.url, gateway=gateway, ttl_ms=TTL_MS, timeout_ms=5_000,
                floor_permille=floor, clock_ms=lambda: self.clock.clock_ms,
            )
            for gateway in GATEWAYS
        }  # fmt: skip
        self.report(rooms, 3_600_000)

    def wait(self, call: Awaitable[Reply]) -> Reply:
        return self.loop.run_until_complete(_awaited(call))

    def both(
        self, gateway: str, step: Callable[[RedisPoolQueue], Awaitable[Any]], expected: Any
    ) -> None:
        """The store's answer is the specification's, and so is what it then tells."""
        queue = self.queues[gateway]
        assert self.wait(step(queue)) == expected
        self.wait(queue.finished())
        while self.pool.is_unfinished:
            self.pool.tick(now_ms=self.clock.now())
        told = self.wait(self.ear.told())
        for each in GATEWAYS:
            expected_messages = [sent for sent in self.pool.messages if sent.gateway == each]
            assert [sent for sent in told if sent.gateway == each] == expected_messages
        self.pool.messages.clear()

    def step_with(self, step: str, ticket_id: str, max_queued: int = 9) -> None:
        """One of those that need an id and, of parking, how many may wait."""
        more = {"max_queued": max_queued} if step == "park" else {}
        expected = getattr(self.pool, step)(ticket_id, **more, now_ms=self.clock.now())
        gateway = self.wishes[ticket_id][1]
        self.both(gateway, lambda q: getattr(q, step)(self.name, ticket_id, **more), expected)

    def enter_one(self, gateway: str, wish: Wish, max_queued: int, *, is_new: bool = True) -> None:
        now_ms = self.clock.now()
        ticket = specified_ticket(wish, gateway, now_ms)
        asks: dict[str, Any] = {"max_queued": max_queued, "is_new": is_new}
        expected = self.pool.enter(ticket, **asks, now_ms=now_ms)
        self.both(gateway, lambda q: q.enter(self.name, wish, **asks), expected)
        self.wishes[wish.id] = (wish, gateway)

    @rule(
        gateway=GATEWAY,
        wishes=WISHES,
        max_queued=st.sampled_from([0, 2, 9, 9, 9]),
        is_new=st.sampled_from([True, True, False]),
    )
    def enter(
        self, gateway: str, wishes: list[dict[str, Any]], max_queued: int, *, is_new: bool = True
    ) -> None:
        for drawn in wishes:
            number = len(self.wishes) * 7_919 % 1_000
            self.enter_one(gateway, Wish(id=f"{number:x}", **drawn), max_queued, is_new=is_new)

    @rule(gateway=GATEWAY, wishes=WISHES, band=st.sampled_from(Band))
    def many_of_one_band(self, gateway: str, wishes: list[dict[str, Any]], band: Band) -> None:
        self.enter(gateway, [{**wish, "band": band, "wait_ms": 60_000} for wish in wishes], 9)

    @rule(
        gateway=GATEWAY,
        wishes=WISHES,
        ms=st.sampled_from([0, 0, 10, 500]),
        give_back=st.booleans(),
    )
    def batch_and_then_interactive(
        self, gateway: str, wishes: list[dict[str, Any]], ms: int, give_back: bool
    ) -> None:
        """Of batch that has just begun some is asked back."""
        self.some_leave(5, 300, ms)
        self.many_of_one_band(gateway, [{**w, "taken_back": 0} for w in wishes], Band.BATCH)
        self.many_of_one_band(gateway, wishes, Band.INTERACTIVE)
        if give_back:
            self.all_taken_back_give_back()

    @rule(count=st.integers(1, 3), cost=st.sampled_from([0, 40, 700]), ms=st.sampled_from([0, 300]))
    def some_leave(self, count: int, cost: int, ms: int) -> None:
        """Places end, and whoever waits has room."""
        for ticket_id in sorted(self.pool.places)[:count]:
            self.leave_one(ticket_id, cost, ms)

    @precondition(lambda self: self.wishes)
    @rule(pick=PICK, max_queued=st.sampled_from([0, 9]))
    def enter_again(self, pick: int, max_queued: int) -> None:
        wish, gateway = self.picked(pick)
        self.enter_one(gateway, wish, max_queued)

    def picked(self, pick: int) -> tuple[Wish, str]:
        """Mostly one that waits or holds a place."""
        known = [*self.pool.waiting, *self.pool.places] if pick % 8 else list(self.wishes)
        return self.wishes[sorted(known or self.wishes)[pick % len(known or self.wishes)]]

    @rule(
        gateway=GATEWAY,
        pick=st.lists(PICK, max_size=6),
        of_all=st.booleans(),
        standing=st.booleans(),
    )
    def renew(self, gateway: str, pick: list[int], of_all: bool, *, standing: bool = True) -> None:
        ids = ["nobody"] if not self.wishes else [self.picked(each)[0].id for each in pick]
        if of_all:
            ids = list(dict.fromkeys([*self.pool.waiting, *self.pool.places]))
        if ids:
            expected = self.pool.renew_all(ids, standing=standing, now_ms=self.clock.now())
            self.both(gateway, lambda q: q.renew(self.name, ids, standing=standing), expected)

    @precondition(lambda self: self.wishes)
    @rule(
        step=st.sampled_from(["take_up", "take_up", "began", "give_back", "park"]),
        pick=PICK,
        max_queued=st.sampled_from([0, 1, 3, 9]),
    )
    def one_step(self, step: str, pick: int, max_queued: int) -> None:
        self.step_with(step, self.picked(pick)[0].id, max_queued)

    @precondition(lambda self: self.pool.places)
    @rule(step=st.sampled_from(["take_up", "began", "park"]))
    def all_places(self, step: str) -> None:
        for ticket_id in sorted(self.pool.places):
            self.step_with(step, ticket_id)

    @rule()
    def all_taken_back_give_back(self) -> None:
        for ticket_id, place in sorted(self.pool.places.items()):
            if place.state.name == "TAKEN_BACK":
                self.step_with("give_back", ticket_id)

    @precondition(lambda self: self.wishes)
    @rule(pick=PICK, cost=st.sampled_from([None, 0, 1, 700, 5_000]), ms=st.sampled_from([0, 900]))
    def leave(self, pick: int, cost: int | None, ms: int) -> None:
        self.leave_one(self.picked(pick)[0].id, cost, ms)

    def leave_one(self, ticket_id: str, cost: int | None, ms: int) -> None:
        self.clock.clock_ms += ms
        gateway = self.wishes[ticket_id][1]
        self.pool.leave(ticket_id, actual_cost=cost, now_ms=self.clock.now())
        self.both(gateway, lambda q: q.leave(self.name, ticket_id, actual_cost=cost), None)

    @precondition(lambda self: self.wishes)
    @rule(pick=PICK, gateway=GATEWAY, other=st.sampled_from([*LOTS, None, None, None]))
    def unpark(self, pick: int, gateway: str, other: str | None) -> None:
        """Of a lot that is parked, where there is one."""
        parked = sorted(each.ticket.id for each in self.pool.waiting.values() if each.is_parked)
        wish = self.wishes[parked[pick % len(parked)]][0] if parked else self.picked(pick)[0]
        tenant, lot = wish.tenant, wish.lot if other is None else other
        self.pool.unpark(tenant, lot, now_ms=self.clock.now())
        self.both(gateway, lambda q: q.unpark(self.name, tenant, lot), None)

    @precondition(lambda self: self.wishes)
    @rule(pick=PICK, worker=st.sampled_from([*WORKERS, "unheard of"]))
    def move(self, pick: int, worker: str) -> None:
        wish, gateway = self.picked(pick)
        expected = self.pool.move(wish.id, worker, now_ms=self.clock.now())
        self.both(gateway, lambda q: q.move(self.name, wish.id, worker), expected)

    @precondition(lambda self: self.wishes)
    @rule(pick=st.lists(PICK, min_size=1, max_size=4), worker=st.sampled_from([*WORKERS, "new"]))
    def resume(self, pick: list[int], worker: str) -> None:
        """Of one gateway, some that it has and some that the store knows otherwise."""
        gateway = self.picked(pick[0])[1]
        chosen = [self.picked(each)[0] for each in pick if self.picked(each)[1] == gateway]
        now_ms = self.clock.now()
        runs = [Run(wish, worker, began=at % 2 == 1) for at, wish in enumerate(chosen)]
        self.pool.resume_all(
            [(specified_ticket(r.wish, gateway, now_ms), r.worker, r.began) for r in runs],
            now_ms=now_ms,
        )
        self.both(gateway, lambda q: q.resume(self.name, runs), None)

    @rule(
        rooms=ROOMS,
        well_ms=st.sampled_from([0, 3_000, 3_600_000, 3_600_000, 3_600_000, 3_600_000]),
    )
    def report(self, rooms: list[dict[str, Any]], well_ms: int) -> None:
        now_ms = self.clock.now()
        reported = [WorkerRoom(**room, well_until_ms=0) for room in rooms]
        expected = [copy(room) for room in reported]
        for room in expected:
            room.well_until_ms = now_ms + well_ms
            room.sequences_max = min(room.sequences_max, 2**53 - 1)
            room.tokens_max = min(room.tokens_max, 2**53 - 1)
        self.pool.report_all(expected, now_ms=now_ms)
        self.both(GATEWAYS[0], lambda q: q.report(self.name, reported, well_ms=well_ms), None)

    @rule(ms=st.sampled_from([0, 1, 100, 500, 1_000, 1_100, 5_000, 30_000]))
    def time_passes(self, ms: int) -> None:
        self.clock.clock_ms += ms

    @rule(ms=st.sampled_from([1_000, 4_000, 9_000, 30_000]))
    def time_passes_and_all_live(self, ms: int) -> None:
        """They are taken up, and renewed all the while."""
        self.all_places("take_up")
        while ms > 0:
            self.clock.clock_ms += min(ms, TTL_MS - 1)
            ms -= TTL_MS - 1
            self.renew(GATEWAYS[1], [], True)

    @rule(ms=st.sampled_from([1, 700, 20_000, 600_000]))
    def clock_steps_back(self, ms: int) -> None:
        self.clock.clock_ms -= ms

    @rule(
        what=st.sampled_from(["flushed", "lost", "twenty minutes", "all lapse"]),
        is_now=st.sampled_from([False, False, True]),
    )
    def something_rare(self, what: str, is_now: bool) -> None:
        if not is_now:
            return
        if what == "flushed":
            self.wait(type(self).flush_scripts())
        elif what == "lost":
            self.wait(forget_pool(self.redis, self.name))
            self.pool = Pool(TTL_MS, floor_permille=self.floor)
            self.clock.forget()
        else:
            self.clock.clock_ms += 1_200_000 if what == "twenty minutes" else TTL_MS

    @invariant()
    def both_show_the_same(self) -> None:
        now_ms = self.clock.now()
        self.pool.tick(now_ms=now_ms)
        use = specified_use(self.pool, now_ms)
        assert self.wait(self.queues[GATEWAYS[0]].observe(self.name)) == use
        self.both(GATEWAYS[0], lambda q: q.tick(self.name), None)

    def teardown(self) -> None:
        self.wait(self.redis.aclose())


@contextmanager
def parity_with(
    url: str,
    connect: Callable[[], RedisClient],
    hear: Callable[[tuple[str, ...]], Awaitable[Ear]],
    flush_scripts: Callable[[], Awaitable[None]],
) -> Iterator[type[QueueParity]]:
    """The machine for one store, until the block ends."""

    class Parity(QueueParity):
        loop = asyncio.new_event_loop()

    Parity.url = url
    Parity.connect = staticmethod(connect)
    Parity.flush_scripts = staticmethod(flush_scripts)
    Parity.ear = Parity.loop.run_until_complete(_awaited(hear(GATEWAYS)))
    try:
        yield Parity
    finally:
        Parity.loop.run_until_complete(_awaited(Parity.ear.aclose()))
        Parity.loop.close()


def run_parity(machine: type[QueueParity], *, examples: int) -> None:
    """Run it, always with the same random choices."""
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            phases=[Phase.generate],
            stateful_step_count=50,
            deadline=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        ),
    )


async def _awaited(call: Awaitable[Reply]) -> Reply:
    return await call
