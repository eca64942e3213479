"""What a random machine seldom draws: a pool's queue with more tenants and tickets than any one
step looks at, grants or lets go, and rules that show only in one order of steps. The specification
and a real store are compared at every step."""

import itertools
import random
from copy import deepcopy
from typing import Any

from queue_draws import WORKERS
from queue_parity import GATEWAYS, TTL_MS, QueueParity

from gateway.domain.queue.lines import OF_A_TENANT
from gateway.domain.queue.order import LOOKED_AT
from gateway.domain.queue.tickets import Band, PlaceState
from gateway.serving.queue_ports import Wish

GATEWAY = GATEWAYS[0]
WELL_MS = 3_600_000


def run_last_looked_at(machine: QueueParity) -> None:
    """The last that is looked at, behind all that no worker has room for, is granted; a tenant's
    own behind its first few is not."""
    machine.begin(0, _rooms(4, 2**40))
    numbers = itertools.count()
    for _ in WORKERS:
        machine.enter_one(GATEWAY, _wish(next(numbers), "runs", sequences=3), 10**6)
    for number in range(LOOKED_AT - 1):
        tenant = f"t{number // OF_A_TENANT}"
        machine.enter_one(GATEWAY, _wish(next(numbers), tenant, sequences=50), 10**6)
    behind = {"wait_ms": 900_000}
    machine.enter_one(GATEWAY, _wish(next(numbers), "t0", **behind), 10**6)
    assert len(machine.pool.places) == len(WORKERS)
    last = f"t{(LOOKED_AT - 1) // OF_A_TENANT}"
    machine.enter_one(GATEWAY, _wish(next(numbers), last, **behind), 10**6)
    assert len(machine.pool.places) == len(WORKERS) + 1
    machine.enter_one(GATEWAY, _wish(next(numbers), "tz", **behind), 10**6)
    machine.both_show_the_same()
    machine.teardown()


def run_not_lifted(machine: QueueParity) -> None:
    """Whose place was taken back has not ceased to wait: it is not lifted to those who do."""
    machine.begin(0, [{"id": "w", "sequences_max": 2, "batch_max": 2, "tokens_max": 2**40}])
    batch: dict[str, Any] = {"band": Band.BATCH}
    machine.enter_one(GATEWAY, _wish(1, "b", cost=1, **batch), 9)
    machine.enter_one(GATEWAY, _wish(2, "a", cost=2_000, **batch), 9)
    machine.enter_one(GATEWAY, _wish(3, "a", cost=2_000, **batch), 9)
    machine.enter_one(GATEWAY, _wish(4, "c"), 9)
    machine.all_taken_back_give_back()
    machine.enter_one(GATEWAY, _wish(5, "b", cost=1, **batch), 9)
    assert {*machine.pool.waiting} == {"00001", "00003", "00005"}
    machine.leave_one("00002", 2_000, 0)
    assert {*machine.pool.waiting} == {"00003", "00005"}
    machine.leave_one("00001", 1, 0)
    assert {*machine.pool.waiting} == {"00003"}
    machine.teardown()


def run_lapsed(machine: QueueParity) -> None:
    """What ran until nobody renewed it was served, and its tenant goes behind one that was not."""
    machine.begin(0, [{"id": "w", "sequences_max": 1, "batch_max": 1, "tokens_max": 2**40}])
    machine.enter_one(GATEWAY, _wish(1, "z", cost=2_000), 9)
    machine.time_passes(1)
    machine.enter_one(GATEWAY, _wish(2, "z"), 9)
    machine.enter_one(GATEWAY, _wish(3, "b"), 9)
    machine.time_passes(TTL_MS - 1)
    machine.both_show_the_same()
    assert {*machine.pool.waiting} == {"00002"}
    machine.teardown()


def run_promoted(machine: QueueParity) -> None:
    """Batch that would miss its deadline if it waited again is not asked back."""
    machine.begin(0, [{"id": "w", "sequences_max": 2, "batch_max": 2, "tokens_max": 2**40}])
    for number, promote_after_ms in ((1, 3_000), (2, 3_001)):
        wish = _wish(number, "b", band=Band.BATCH, promote_after_ms=promote_after_ms)
        machine.enter_one(GATEWAY, wish, 9)
    machine.time_passes(3_000)
    for number in (3, 4):
        machine.enter_one(GATEWAY, _wish(number, "c"), 9)
    states = {name: place.state for name, place in machine.pool.places.items()}
    assert states == {"00001": PlaceState.HELD, "00002": PlaceState.TAKEN_BACK}
    machine.both_show_the_same()
    machine.teardown()


def run_no_worker(machine: QueueParity) -> None:
    """While no worker is well nobody is taken in, also of a pool that was lost; who waits stays."""
    machine.begin(0, _rooms(1, 2**40)[:1])
    for number in (1, 2):
        machine.enter_one(GATEWAY, _wish(number, "a"), 9)
    machine.report(_rooms(1, 2**40)[:1], 0)
    machine.enter_one(GATEWAY, _wish(3, "b"), 0)
    machine.enter_one(GATEWAY, _wish(2, "a"), 0)
    machine.renew(GATEWAY, [], True)
    assert ({*machine.pool.waiting}, {*machine.pool.places}) == ({"00002"}, {"00001"})
    machine.something_rare("lost", True)
    machine.enter_one(GATEWAY, _wish(4, "a"), 9)
    assert not machine.pool.waiting
    machine.both_show_the_same()
    machine.teardown()


def run_kept_for_the_floor(machine: QueueParity, chance: random.Random) -> None:
    """Batch of all sizes beside interactive of some, at a floor that is often due: workers are kept
    for it, for both bands, and in vain."""
    sizes = ((1, 100), (2, 100), (3, 900), (1, 2_000), (9, 100))
    numbers, kept = itertools.count(), set[str]()
    machine.begin(700, _rooms(6, 2_400)[: chance.choice((1, 2))])
    for _ in range(80):
        for band in Band:
            for _ in range(4 - len(machine.pool.lines[band])):
                sequences, need = sizes[chance.randrange(len(sizes) if band else 3)]
                wish = _wish(
                    next(numbers), f"t{chance.randrange(4)}", band=band, sequences=sequences,
                    need_tokens=need, cost=chance.choice((1, 50, 300)), wait_ms=10**9,
                )  # fmt: skip
                machine.enter_one(chance.choice(GATEWAYS), wish, 10**6)
        machine.clock.clock_ms += chance.choice((0, 100, 3_000))
        machine.renew(GATEWAY, [], True)
        machine.all_places("take_up")
        machine.leave_one(chance.choice(sorted(machine.pool.places)), 50, 0)
        second = machine.pool.order.bypass[Band.BATCH]
        if second.worker and machine.pool.order.is_due(*machine.pool.lines.values()):
            kept.add(second.ticket_id)
    machine.both_show_the_same()
    assert kept
    machine.teardown()


def run_parked(machine: QueueParity) -> None:
    """Where so many of its tenant wait, parked or not, it is not parked, and its place is free."""
    machine.begin(0, _rooms(2, 2**40)[:1])
    for number in (1, 2, 3):
        machine.enter_one(GATEWAY, _wish(number, "a"), 9)
    machine.step_with("park", "00001", 2)
    machine.step_with("park", "00002", 1)
    machine.both_show_the_same()
    assert ({*machine.pool.waiting}, {*machine.pool.places}) == ({"00001"}, {"00003"})
    machine.teardown()


def run_told_to_look(machine: QueueParity) -> None:
    """What ends is told to the first of its lot and to the first of its tenant, at other gateways;
    a lot that has room lets its own first wait, and no other."""
    one, other = GATEWAYS
    machine.begin(0, _rooms(9, 2**40)[:1])
    parked = [(1, "k1", other), (2, "k2", one), (3, "k2", other), (4, "k1", one)]
    for number, lot, gateway in parked:
        machine.enter_one(gateway, _wish(number, "a", lot=lot, wait_ms=600_000 + number), 9)
        machine.step_with("park", f"{number:05d}")
    looks = []
    for number, (lot, gateway) in enumerate(itertools.product(("k1", "k2", "k3"), GATEWAYS), 5):
        machine.enter_one(gateway, _wish(number, "a", lot=lot), 9)
        looks.append(_looks_after(machine, f"{number:05d}"))
    machine.both_show_the_same()
    machine.pool.unpark("a", "k2", now_ms=machine.clock.now())
    machine.both(other, lambda q: q.unpark(machine.name, "a", "k2"), None)
    machine.both_show_the_same()
    # Of k1 the first is at the other gateway; of k2 at this one, and the tenant's at the other.
    assert looks == [["00001"], [], ["00001"], ["00002"], ["00001"], []]
    assert set(machine.pool.places) == {"00002"}
    machine.teardown()


def _looks_after(machine: QueueParity, ticket_id: str) -> list[str]:
    """Who is told to look at limits when this one has ended."""
    ended = deepcopy(machine.pool)
    ended.leave(ticket_id, actual_cost=5, now_ms=machine.clock.now())
    machine.leave_one(ticket_id, 5, 0)
    return [sent.ticket_id for sent in ended.messages if sent.is_look]


def run_crowded(machine: QueueParity, chance: random.Random, *, rounds: int) -> None:
    """All steps with many that wait."""

    def drawn(number: int) -> Wish:
        name = chance.choice((number % 90, number % 90, number % 3))
        return _wish(
            number,
            f"ten_{name}",
            band=Band(number % 4 == 0),
            sequences=chance.choice((1, 1, 1, 2)),
            need_tokens=chance.choice((100, 900, 6_000)),
            cost=chance.randint(1, 3_000),
            weight=chance.choice((1, 2, 4)),
            wait_ms=chance.choice((60_000, 600_000)),
            promote_after_ms=chance.choice((3_000, 30_000, 300_000)),
        )

    numbers = itertools.count()
    machine.begin(50, _rooms(4, 8_000))
    for _ in range(rounds):
        for _ in range(180):
            machine.enter_one(chance.choice(GATEWAYS), drawn(next(numbers)), 10**6)
        for _ in range(20):
            machine.some_leave(chance.randint(1, 3), 500, chance.choice((0, 70)))
            machine.all_places("take_up")
            machine.time_passes_and_all_live(chance.choice((0, 500)))
            machine.all_taken_back_give_back()
        machine.both_show_the_same()
        machine.report(_rooms(60, 2**53), WELL_MS)
        machine.report(_rooms(3, 5_000), WELL_MS)
        machine.time_passes(1_100)
        machine.both_show_the_same()
        machine.renew(GATEWAY, list(range(1, 31)), False)
        machine.time_passes(TTL_MS + 1)
        machine.both_show_the_same()
    machine.teardown()


def _wish(number: int, tenant: str, **other: Any) -> Wish:
    values: dict[str, Any] = {
        "band": Band.INTERACTIVE, "sequences": 1, "need_tokens": 100, "cost": 50, "weight": 1,
        "wait_ms": 600_000, "promote_after_ms": 300_000,
    }  # fmt: skip
    return Wish(id=f"{number:05d}", tenant=tenant, **{**values, **other})


def _rooms(sequences: int, tokens: int) -> list[dict[str, Any]]:
    return [
        {"id": name, "sequences_max": sequences, "batch_max": sequences // 2, "tokens_max": tokens}
        for name in WORKERS
    ]
