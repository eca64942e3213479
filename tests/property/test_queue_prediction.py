"""What a queue tells a waiter, against what then happens to it: in saturated pools whose requests
differ in size, band and tenant, on a virtual clock."""

import heapq
import random
from statistics import median

import pytest
from queue_examples import batch, granted, ticket, worker

from gateway.domain.queue.pool import TOO_LONG_BY, Pool
from gateway.domain.queue.tickets import Queued, Ticket, TooLong

RUN_MS = 240_000
BEYOND_BY_MEMORY = {"80-fold, by memory": 0.22, "alike, by memory": 0.08}
"""Where memory binds, small requests go past large ones that are predicted to go before: more are
served earlier than was told. How many differs by the seed (5.7 to 8.7 % where they are alike), so
several are taken together; with no bound on keeping workers (`bypass`) they are as many (6.8 %).
80-fold it is 21.2 % over 24 seeds (20.6 % where no newcomer went first)."""
SEEDS = {"80-fold, by memory": range(3, 27), "alike, by memory": range(3, 9)}


class Saturated:
    """Requests that come a little faster than a pool of two workers can serve. What would be
    refused by prediction waits here all the same, so that it is seen."""

    def __init__(self, seed: int, sizes: tuple[int, ...], batch_share: float, limit: int) -> None:
        self.chance = random.Random(seed)  # noqa: S311
        self.sizes, self.batch_share = sizes, batch_share
        self.queue = Pool(10**9, 50)
        rooms = [worker(name, 10, 8, tokens=limit) for name in ("w1", "w2")]
        self.queue.report_all(rooms, now_ms=0)
        self.tickets: dict[str, Ticket] = {}
        self.predicted: dict[str, tuple[int, int]] = {}
        self.ratios: list[float] = []
        self.waits: list[tuple[int, int]] = []
        """Predicted, and what it was, in ms."""

    def ask(self, now_ms: int) -> None:
        """One more request of one of four tenants."""
        made = batch if self.chance.random() < self.batch_share else ticket
        cost = round(self.chance.choice(self.sizes) * self.chance.uniform(0.5, 1.5))
        name = f"{len(self.tickets):05}"
        one = made(name, self.chance.choice("abcd"), cost=cost, need_tokens=cost, entered_ms=now_ms)
        self.tickets[name] = one
        answer = self.queue.enter(one, max_queued=10**6, now_ms=now_ms)
        assert not isinstance(answer, TooLong)
        if isinstance(answer, Queued) and answer.wait_ms is not None and now_ms > 60_000:
            self.predicted[name] = now_ms, answer.wait_ms

    def run(self, every_ms: int) -> None:
        """Four minutes."""
        ends: list[tuple[int, str]] = []
        now_ms = next_ms = 0
        held: set[str] = set()
        while now_ms < RUN_MS:
            now_ms = min(next_ms, ends[0][0] if ends else next_ms)
            if now_ms == next_ms:
                next_ms += round(self.chance.expovariate(1 / every_ms)) + 1
                self.ask(now_ms)
            else:
                _, name = heapq.heappop(ends)
                if name in self.queue.places:
                    self.queue.leave(name, actual_cost=self.tickets[name].cost, now_ms=now_ms)
            granted(self.queue)
            for name in sorted(set(self.queue.places) - held):
                self.queue.began(name, now_ms=now_ms)
                held.add(name)
                heapq.heappush(ends, (now_ms + 200 + 5 * self.tickets[name].cost, name))
                if name in self.predicted:
                    entered_ms, wait_ms = self.predicted[name]
                    self.waits.append((wait_ms, now_ms - entered_ms))


WORLDS = {
    # sizes, share of batch, tokens of a worker, one comes every so many ms
    "alike, by sequences": ((400,), 0.0, 10**9, 105),
    "alike, by memory": ((400,), 0.0, 2_400, 175),
    "80-fold, by sequences": ((50, 400, 4_000), 0.0, 10**9, 340),
    "80-fold, by memory": ((50, 400, 4_000), 0.0, 16_000, 900),
    "with batch": ((200, 800), 0.2, 10**9, 122),
}


@pytest.mark.parametrize("name", sorted(WORLDS))
def test_the_predicted_wait_is_about_the_wait(name: str) -> None:
    """The median within a factor of two; and few are served so early that a deadline between then
    and half of what was told would have refused them wrongly."""
    sizes, share, limit, every_ms = WORLDS[name]
    worlds = [Saturated(seed, sizes, share, limit) for seed in SEEDS.get(name, (3,))]
    for world in worlds:
        world.run(every_ms)
    waits = [(told, was) for world in worlds for told, was in world.waits if was >= 500]
    assert len(waits) > 50
    assert 0.5 <= median(told / was for told, was in waits) <= 2
    beyond = sum(told > TOO_LONG_BY * was for told, was in waits) / len(waits)
    assert beyond <= BEYOND_BY_MEMORY.get(name, 0.06)
