"""INV-8: while an admissible interactive request waits, no batch is granted but the floor's share,
promoted batch included; and a saturated pool adds at most one dispatch to an interactive wait."""

import random
from itertools import pairwise

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings
from queue_examples import batch, enter, granted, pool, ticket, worker

from gateway.domain.queue.pool import Pool
from gateway.domain.queue.tickets import Band


def dispatched(floor_permille: int, *, is_promoted: bool, count: int = 1_000) -> list[Band]:
    """The bands of so many grants, while both always wait, of a worker with room for four."""
    queue = pool(worker(sequences=4, batch_sequences=2), floor_permille=floor_permille)
    chance = random.Random(floor_permille)  # noqa: S311
    promote_ms = 0 if is_promoted else 10**9
    waits = 0
    bands: dict[str, Band] = {}
    order: list[Band] = []
    running: list[str] = []

    def ask(band: Band) -> None:
        nonlocal waits
        waits += 1
        made = batch if band is Band.BATCH else ticket
        one = made(
            f"{waits:05}", chance.choice("abc"), cost=chance.randint(1, 90), promote_ms=promote_ms
        )
        bands[one.id] = band
        enter(queue, one, now_ms=1)

    for _ in range(4):
        ask(Band.INTERACTIVE)
    running += queue.places
    for _ in range(40):
        ask(Band.INTERACTIVE)
        ask(Band.BATCH)
    while len(order) < count:
        gone = running.pop(chance.randrange(len(running)))
        queue.leave(gone, actual_cost=5, now_ms=2)
        for name in granted(queue):
            queue.began(name, now_ms=2)
            running.append(name)
            order.append(bands[name])
            ask(bands[name])
    return order


@pytest.mark.parametrize("is_promoted", [False, True])
@pytest.mark.parametrize(("floor_permille", "batches"), [(50, 50), (0, 0), (200, 200), (400, 400)])
def test_of_1000_dispatches_batch_has_its_floor(
    floor_permille: int, batches: int, is_promoted: bool
) -> None:
    """5 % are 50 of 1,000, give or take ten; promotion is no way around it."""
    order = dispatched(floor_permille, is_promoted=is_promoted)
    assert abs(order.count(Band.BATCH) - batches) <= (10 if floor_permille else 0)


def test_the_floor_is_spread_evenly() -> None:
    """At 5 % one in twenty, and never two in a row."""
    order = dispatched(50, is_promoted=False)
    at = [index for index, band in enumerate(order) if band is Band.BATCH]
    gaps = {after - before for before, after in pairwise(at)}
    assert gaps == {20}


def test_idle_batch_saves_no_floor_up() -> None:
    """What batch ran while no interactive waited gives it no turn, nor takes one."""
    queue = pool(worker(sequences=1), floor_permille=50)
    enter(queue, *(batch(f"b{i:03}") for i in range(300)))
    for index in range(200):
        queue.leave(f"b{index:03}", actual_cost=10, now_ms=1)
    queue.began("b200", now_ms=1)
    assert queue.order.credit == 0
    enter(queue, ticket("i1"), ticket("i2"), now_ms=1)
    granted(queue)
    queue.leave("b200", actual_cost=10, now_ms=2)
    assert granted(queue) == ["i1"]


@settings(max_examples=100, deadline=None)
@given(
    floor=st.sampled_from([0, 50, 400]),
    workers=st.integers(1, 3),
    need=st.sampled_from([1, 10, 35, 100]),
    states=st.lists(
        st.sampled_from(["granted", "held", "began", "asked"]), min_size=5, max_size=40
    ),
    needs=st.lists(st.sampled_from([1, 5, 10, 30]), min_size=40, max_size=40),
    chance=st.randoms(use_true_random=False),
)
def test_saturation_with_batch_adds_at_most_one_dispatch(
    *,
    floor: int,
    workers: int,
    need: int,
    states: list[str],
    needs: list[int],
    chance: random.Random,
) -> None:
    """Whatever batch holds and wants, however large the interactive request that comes: at most one
    batch request is sent before it is, then a worker is kept for it, and nothing is sent there
    (INV-8, 'Done when' 4 of the queue). Where another worker is free for it sooner, so much the
    better: batch sent to others takes nothing from it."""
    rooms = [worker(f"w{i}", 4, 4, tokens=100) for i in range(workers)]
    queue = pool(*rooms, floor_permille=floor)
    queue.order.credit = chance.choice([0, 999, 1_000]) if floor else 0
    enter(queue, *(batch(f"b{i:02}", "abc"[i % 3], need_tokens=n) for i, n in enumerate(needs)))
    for name, state in zip(sorted(queue.places), states, strict=False):
        if state in ("held", "began"):
            queue.take_up(name, now_ms=0)
        if state == "began":
            queue.began(name, now_ms=0)
    asked = ticket("i", "z", need_tokens=need, cost=need)
    sent = 0
    queue.messages.clear()
    enter(queue, asked, now_ms=1)
    while "i" not in queue.places:
        names = sorted(queue.places)
        before, kept = set(names), kept_for("i", queue)
        one = chance.choice(names)
        if queue.places[one].state.name == "TAKEN_BACK":
            queue.give_back(one, now_ms=2)
        else:
            queue.leave(one, actual_cost=5, now_ms=2)
        if "i" in queue.places:
            break
        kept = kept or kept_for("i", queue)
        for name in (*set(queue.places) - before, *{one}.intersection(queue.places)):
            sent += kept in ("", queue.places[name].worker)
    assert sent <= 1


def kept_for(name: str, queue: Pool) -> str:
    """The worker on which nobody else is granted until this one is."""
    bypass = queue.order.bypass[Band.INTERACTIVE]
    return bypass.worker if bypass.ticket_id == name else ""


def test_the_floors_batch_is_not_taken_back_for_whom_it_was_preferred_to() -> None:
    """It would be no floor."""
    queue: Pool = pool(worker(sequences=1), floor_permille=1_000)
    enter(queue, ticket("i1"), ticket("i2"), batch("b1"))
    queue.order.credit = 1_000
    granted(queue)
    queue.leave("i1", actual_cost=10, now_ms=1)
    assert granted(queue) == ["b1"]
    queue.take_up("b1", now_ms=2)
    queue.tick(now_ms=3)
    assert queue.places["b1"].state.name == "HELD"
