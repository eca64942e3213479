"""INV-8: batch has its share of what is sent while interactive waits, whatever one needs of a
worker. One that needs more than an interactive request leaves is kept a worker when it is the
floor's turn, against interactive too; what idles for it is bounded as all that is kept is."""

import random
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count

import pytest
from queue_examples import batch, enter, pool, ticket, worker

from gateway.domain.queue.bypass import KEPT_MS
from gateway.domain.queue.tickets import Band

SEQUENCES, TOKENS = 16, 1_600
TEN_MINUTES_MS = 600_000
Need = tuple[int, int]
"""Sequences and tokens."""


@dataclass
class Contested:
    """A pool whose places are all taken; four interactive requests of 100 tokens and, of each need,
    two of batch wait at any time. Streams last for 1 to `longest_ms`."""

    needs: list[Need]
    workers: int = 1
    floor_permille: int = 50
    longest_ms: int = 3_000
    seed: int = 1
    sent: dict[str, int] = field(default_factory=dict)
    """By the first letter of its name: `i`, or the number of a need."""
    idle_ms: int = 0
    """Times sequences."""

    def __post_init__(self) -> None:
        rooms = [worker(f"w{i}", SEQUENCES, tokens=TOKENS) for i in range(self.workers)]
        self.pool = pool(*rooms, floor_permille=self.floor_permille)
        self.pool.ttl_ms = 10**9
        self.chance = random.Random(self.seed)  # noqa: S311 - a schedule, no secret
        self.numbers = count()
        self.ends: list[tuple[int, str]] = []
        self.sent = dict.fromkeys(["i", *map(str, range(len(self.needs)))], 0)
        for _ in range(SEQUENCES * self.workers):
            self.ask_interactive(0)

    def serve(self, until_ms: int) -> "Contested":
        """Until then."""
        now_ms = 0
        while now_ms < until_ms:
            self.ask(now_ms)
            self.begin(now_ms)
            then_ms, name = self.ends[0]
            if then_ms > now_ms + 1_000:
                name, then_ms = "", now_ms + 1_000
            used = sum(self.part(room.running, room.tokens) for room in self.pool.rooms.values())
            self.idle_ms += round((then_ms - now_ms) * (SEQUENCES * self.workers - used))
            now_ms = then_ms
            if not name:
                self.pool.tick(now_ms=now_ms)
                continue
            heappop(self.ends)
            self.pool.leave(name, actual_cost=100, now_ms=now_ms)
        return self

    def part(self, running: int, tokens: int) -> float:
        """What so many take of a worker, in sequences."""
        return min(SEQUENCES, max(running, tokens * SEQUENCES / TOKENS))

    def ask(self, now_ms: int) -> None:
        """As many wait as waited before."""
        waiting = [name[0] for name in self.pool.waiting]
        for _ in range(4 - waiting.count("i")):
            self.ask_interactive(now_ms)
        for at, (sequences, tokens) in enumerate(self.needs):
            for _ in range(2 - waiting.count(str(at))):
                name = f"{at}-{next(self.numbers)}"
                size = {"sequences": sequences, "need_tokens": tokens, "cost": 100}
                asked = batch(name, f"b{at}", entered_ms=now_ms, **size)
                enter(self.pool, asked, now_ms=now_ms)

    def ask_interactive(self, now_ms: int) -> None:
        """Of one of three tenants."""
        name, tenant = f"i{next(self.numbers)}", self.chance.choice("abc")
        asked = ticket(name, tenant, need_tokens=100, cost=100, entered_ms=now_ms)
        enter(self.pool, asked, now_ms=now_ms)

    def begin(self, now_ms: int) -> None:
        """Those that were granted send tokens."""
        running = {name for _, name in self.ends}
        for name in [name for name in self.pool.places if name not in running]:
            self.sent[name[0]] += 1
            self.pool.began(name, now_ms=now_ms)
            ends_ms = now_ms + self.chance.randint(min(1_000, self.longest_ms), self.longest_ms)
            heappush(self.ends, (ends_ms, name))

    @property
    def share(self) -> float:
        """Of batch."""
        return 1 - self.sent["i"] / sum(self.sent.values())


SIZES = [(2, 100), (4, 100), (1, 200), (1, 400)]
"""Two and four sequences; two and four times the tokens of an interactive request."""


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("need", SIZES)
def test_batch_has_its_floor_whatever_it_needs(need: Need, workers: int) -> None:
    """5 % of what is sent, give or take 1 %, and nine tenths of the workers are in use."""
    ran_ms = TEN_MINUTES_MS // 3 // workers
    system = Contested([need], workers).serve(ran_ms)
    assert sum(system.sent.values()) > 1_000
    assert abs(system.share - 0.05) <= 0.01
    assert system.idle_ms <= 0.1 * ran_ms * SEQUENCES * workers


@pytest.mark.parametrize("need", SIZES)
def test_without_a_floor_it_has_none(need: Need) -> None:
    """None at all."""
    system = Contested([need], floor_permille=0).serve(60_000)
    assert system.sent["i"] > 300
    assert system.sent["0"] == 0


@pytest.mark.parametrize(
    ("need", "workers", "longest_ms"),
    [
        ((SEQUENCES, 100), 1, 3_000),
        ((4 * SEQUENCES, 100), 3, 15_000),
        ((1, TOKENS), 1, 12_000),
        ((1, TOKENS), 2, KEPT_MS - 1_000),
        ((9, 900), 1, 3_000),
    ],
)
def test_what_needs_most_of_a_worker_is_served_too_and_idles_a_tenth(
    need: Need, workers: int, longest_ms: int
) -> None:
    """Less often than one in twenty; never is not a share."""
    system = Contested([need], workers, longest_ms=longest_ms).serve(TEN_MINUTES_MS)
    assert system.sent["0"] >= 2
    assert system.share <= 0.06
    assert system.idle_ms <= 0.1 * TEN_MINUTES_MS * SEQUENCES * workers


@pytest.mark.parametrize("longest_ms", [3_000, 60_000])
def test_the_floor_is_not_all_of_those_that_need_little(longest_ms: int) -> None:
    """They go past one that needs more until they cost as much; then the floor's turn is its. Also
    where it comes round less often than a worker is kept."""
    system = Contested([(1, 100), (4, 100)], longest_ms=longest_ms).serve(100 * longest_ms)
    assert abs(system.share - 0.05) <= 0.01
    assert 0.3 <= system.sent["1"] / (system.sent["0"] + system.sent["1"]) <= 0.7


def test_a_worker_is_not_kept_for_both_bands_from_each_other() -> None:
    """For a batch request, while an interactive one that was overtaken has it kept too: that goes
    first, and neither waits for the other until the half minute is over."""
    queue = pool(worker(sequences=4), floor_permille=50)
    enter(queue, *(ticket(f"r{i}", "r") for i in range(4)))
    enter(queue, batch("large", "b", sequences=3), ticket("i1"), ticket("i2"))
    queue.order.credit = 1_000
    queue.leave("r0", actual_cost=10, now_ms=1)
    kept = queue.order.bypass
    assert (kept[Band.BATCH].ticket_id, kept[Band.BATCH].worker) == ("large", "w")
    assert {"i1", "i2"} <= set(queue.waiting)
    first = kept[Band.INTERACTIVE]
    first.ticket_id, first.worker, first.kept_ms = "i2", "w", 1
    queue.tick(now_ms=2)
    assert "i2" in queue.places
    assert "large" in queue.waiting
    for name in ("r1", "r2", "r3", "i1"):
        queue.leave(name, actual_cost=10, now_ms=3)
    assert "large" in queue.places


def test_no_batch_is_taken_back_on_a_worker_that_is_kept_for_batch() -> None:
    """The interactive request that it would be taken back for may not go there."""
    queue = pool(worker(sequences=4), floor_permille=50)
    enter(queue, ticket("r", "r"), batch("young", "c"), ticket("s", "r"), ticket("t", "r"))
    queue.began("r", now_ms=1)
    enter(queue, batch("large", "b", sequences=3), now_ms=1)
    queue.order.credit = 1_000
    queue.order.bypass[Band.BATCH].ticket_id = "large"
    queue.order.bypass[Band.BATCH].worker = "w"
    queue.order.bypass[Band.BATCH].kept_ms = 1
    enter(queue, ticket("i"), now_ms=2)
    assert queue.places["young"].state.name == "HELD"
    queue.order.credit = 0
    queue.tick(now_ms=3)
    assert queue.places["young"].state.name == "TAKEN_BACK"
