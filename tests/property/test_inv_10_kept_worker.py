"""INV-10: a worker that is kept for a request that only fits an empty one idles while it drains.
However cheap such requests are and however often they come, others keep nine tenths of what they
had, and whoever needs little of a worker is kept one all the same."""

import random
from dataclasses import dataclass, field
from heapq import heappop, heappush

import hypothesis.strategies as st
import pytest
from hypothesis import example, given, settings
from queue_examples import batch, ticket, worker

from gateway.domain.queue.bypass import KEPT_MS
from gateway.domain.queue.pool import Pool
from gateway.domain.queue.tickets import Band, Ticket

TEN_MINUTES_MS = 600_000
SEQUENCES = 16
TOKENS = 1_600
WIDE_MS = 200
"""What a wide request takes once it runs."""


@dataclass
class Saturated:
    """A pool whose places are all taken; a new one is asked for with each that is granted, and each
    worker has `long` streams that do not end. Of `wide` requests one waits at a time, and comes
    anew after `patience_ms`."""

    workers: int
    streams_s: tuple[int, int]
    long: int = 0
    wide: dict[str, int] | None = None
    band: Band = Band.INTERACTIVE
    patience_ms: int = TEN_MINUTES_MS
    now_ms: int = 0
    used: int = 0
    """Milliseconds times sequences that others ran."""
    wide_waits_ms: list[int] = field(default_factory=list)
    """Of those that were served."""

    def __post_init__(self) -> None:
        self.chance = random.Random(self.workers)  # noqa: S311
        self.pool = Pool(10**9, 0)
        rooms = [worker(f"w{i}", SEQUENCES, tokens=TOKENS) for i in range(self.workers)]
        self.pool.report_all(rooms, now_ms=0)
        self.ends: list[tuple[int, str]] = []
        self.running: set[str] = set()
        """That ever ran."""
        self.tickets: dict[str, Ticket] = {}
        self.count = 0

    def ask(self, name: str, tenant: str, wait_ms: int, **other: int) -> None:
        """For a place."""
        self.count += 1
        made = batch if self.band is Band.BATCH else ticket
        asked = made(
            f"{name}-{self.count}", tenant, entered_ms=self.now_ms,
            deadline_ms=self.now_ms + wait_ms, promote_ms=10**9, **other,
        )  # fmt: skip
        self.tickets[asked.id] = asked
        self.pool.enter(asked, max_queued=10**6, now_ms=self.now_ms)

    def serve(self, until_ms: int = TEN_MINUTES_MS) -> None:
        """Until then."""
        for _ in range(self.workers * SEQUENCES + 3):
            self.ask_other()
        while self.now_ms < until_ms:
            self.another_wide()
            self.begin()
            end_ms, name = self.ends[0]
            then_ms = min(end_ms, self.now_ms + 1_000)
            for place in self.pool.places.values():
                is_other = place.ticket.id.startswith("other")
                self.used += (then_ms - self.now_ms) * place.ticket.sequences * is_other
            self.now_ms = then_ms
            if end_ms > then_ms:
                self.pool.tick(now_ms=then_ms)
                continue
            heappop(self.ends)
            self.pool.leave(name, actual_cost=self.tickets[name].cost, now_ms=then_ms)

    def begin(self) -> None:
        """Those that were granted run, and as many others ask. The first have no end."""
        while new := [name for name in self.pool.places if name not in self.running]:
            for name in new:
                self.pool.take_up(name, now_ms=self.now_ms)
                lasts_ms = 1_000 * self.chance.randint(*self.streams_s)
                if name.startswith("wide"):
                    lasts_ms = WIDE_MS
                    self.wide_waits_ms.append(self.now_ms - self.tickets[name].entered_ms)
                elif len(self.running) < self.long * self.workers:
                    lasts_ms = 10**9
                if self.now_ms > 0 and not name.startswith("wide"):
                    self.ask_other()
                self.running.add(name)
                heappush(self.ends, (self.now_ms + lasts_ms, name))

    def ask_other(self) -> None:
        """One of three tenants."""
        self.ask("other", f"t{self.count % 3}", 10**9, need_tokens=90, cost=500)

    def another_wide(self) -> None:
        """Where none is there."""
        known = (*self.pool.waiting, *self.pool.places)
        if self.wide and not any(name.startswith("wide") for name in known):
            self.ask("wide", "wide", self.patience_ms, **self.wide)


WIDE = [
    {"sequences": 4 * SEQUENCES, "need_tokens": 128, "cost": 3 * 128},
    {"sequences": SEQUENCES - 1, "need_tokens": 30, "cost": 45},
    {"sequences": 1, "need_tokens": TOKENS - 60, "cost": 1},
]


@settings(max_examples=5, deadline=None)
@given(
    workers=st.integers(1, 3),
    shortest_s=st.integers(1, 5),
    longest_s=st.integers(5, KEPT_MS // 1_000 - 1),
    wide=st.sampled_from(WIDE),
    band=st.sampled_from(Band),
)
@example(workers=1, shortest_s=1, longest_s=20, wide=WIDE[0], band=Band.INTERACTIVE)
@example(workers=1, shortest_s=20, longest_s=29, wide=WIDE[0], band=Band.INTERACTIVE)
def test_others_keep_nine_tenths_and_the_wide_are_served(
    *, workers: int, shortest_s: int, longest_s: int, wide: dict[str, int], band: Band
) -> None:
    """At saturation for ten minutes, with one that is wide waiting all the time."""
    without = Saturated(workers, (shortest_s, longest_s), band=band)
    without.serve()
    beside = Saturated(workers, (shortest_s, longest_s), wide=wide, band=band)
    beside.serve()
    assert beside.used >= 0.9 * without.used
    assert len(beside.wide_waits_ms) >= 2
    assert max(beside.wide_waits_ms) < TEN_MINUTES_MS


@pytest.mark.parametrize("patience_ms", [2_000, 10_000, TEN_MINUTES_MS])
@pytest.mark.parametrize("workers", [1, 2])
def test_a_stream_that_does_not_end_idles_no_worker_for_more_than_a_tenth(
    workers: int, patience_ms: int
) -> None:
    """The wide ones are never served; nor is it a way out to give up and come again."""
    without = Saturated(workers, (1, 3), long=1)
    without.serve()
    beside = Saturated(workers, (1, 3), long=1, wide=WIDE[0], patience_ms=patience_ms)
    beside.serve()
    assert beside.used >= 0.9 * without.used
    assert not beside.wide_waits_ms


def test_the_wide_are_served_in_a_gap_at_once() -> None:
    """No rest keeps them from a worker that is empty."""
    system = Saturated(1, (1, 10), wide=WIDE[0])
    system.serve(120_000)
    waiting = [name for name in system.pool.waiting if name.startswith("wide")]
    assert waiting
    others = [name for name in (*system.pool.waiting, *system.pool.places) if name not in waiting]
    for name in others:
        system.pool.leave(name, actual_cost=1, now_ms=system.now_ms)
    assert set(system.pool.places) == set(waiting)


def rested() -> Pool:
    """A pool of 20 places where a worker was kept for 1 s for a wide request just now, which then
    gave up; 18 run."""
    pool = Pool(10**9, 0)
    pool.report(worker("w", 20, tokens=2_000), now_ms=0)
    for number in range(18):
        pool.enter(ticket(f"run{number}", "r", need_tokens=100), max_queued=99, now_ms=0)
    pool.enter(ticket("wide", "a", sequences=20, cost=1), max_queued=99, now_ms=0)
    pool.enter(ticket("past", "z", need_tokens=20), max_queued=99, now_ms=0)
    assert pool.order.bypass[Band.INTERACTIVE].worker == "w"
    pool.leave("wide", actual_cost=None, now_ms=1_000)
    assert "past" in pool.places
    return pool


def overtaken(pool: Pool, name: str, *, at_ms: int) -> bool:
    """Whether more than its own cost is granted past it."""
    pool.enter(ticket(f"{name}-past", "z", need_tokens=20), max_queued=99, now_ms=at_ms)
    pool.leave(f"{name}-past", actual_cost=10, now_ms=at_ms)
    pool.enter(ticket(f"{name}-past2", "z", need_tokens=20), max_queued=99, now_ms=at_ms)
    return f"{name}-past2" in pool.places


def test_none_is_kept_for_a_wide_one_for_nine_times_as_long() -> None:
    """On one worker, whoever it is of."""
    pool = rested()
    pool.enter(ticket("wide2", "b", sequences=20, cost=1), max_queued=99, now_ms=1_001)
    assert overtaken(pool, "a", at_ms=9_999)
    pool.leave("a-past2", actual_cost=10, now_ms=9_999)
    assert overtaken(pool, "b", at_ms=9_999)
    pool.leave("b-past2", actual_cost=10, now_ms=9_999)
    assert not overtaken(pool, "c", at_ms=10_000)


def test_a_narrow_one_is_kept_a_worker_meanwhile() -> None:
    """It takes the turn of the wide one that waits for the end of the rest."""
    pool = rested()
    pool.enter(ticket("wide2", "b", sequences=20, cost=1), max_queued=99, now_ms=1_001)
    assert overtaken(pool, "a", at_ms=1_002)
    pool.leave("a-past2", actual_cost=10, now_ms=1_002)
    pool.enter(ticket("narrow", "c", need_tokens=199, cost=1), max_queued=99, now_ms=1_003)
    assert not overtaken(pool, "b", at_ms=1_004)
    assert pool.order.bypass[Band.INTERACTIVE].ticket_id == "narrow"
