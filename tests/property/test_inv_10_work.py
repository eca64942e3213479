"""INV-10: no capacity idles while somebody waits who may have it; and nobody is overtaken for ever
by those who fit where it does not. (`test_queue_rules` looks at the first after every step.)"""

from random import Random

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings
from queue_examples import TTL_MS, batch, enter, pool, ticket, worker

from gateway.domain.queue.bypass import KEPT_MS
from gateway.domain.queue.tickets import Band, Ticket

NEEDS = st.lists(st.sampled_from([1, 2, 5, 10, 30]), min_size=15, max_size=40)


def cost_past(first: Ticket, others: list[Ticket], chance: Random) -> list[int]:
    """What was granted past one that is too large for what is free, while one ends after another:
    the costs, until it is granted itself."""
    queue = pool(worker(sequences=50, tokens=60))
    enter(queue, *others[:20])
    enter(queue, first)
    enter(queue, *others[20:])
    past: list[int] = []
    counters = queue.lines[Band.INTERACTIVE].counters
    while first.id not in queue.places:
        before = set(queue.places)
        is_next = min(counters.waits, key=counters.order) == first.tenant
        is_counted = is_next and queue.order.bypass[Band.INTERACTIVE].ticket_id in ("", first.id)
        gone = chance.choice(sorted(queue.places))
        queue.leave(gone, actual_cost=queue.places[gone].ticket.cost, now_ms=0)
        new = sorted(set(queue.places) - before - {first.id})
        if is_counted:
            past += [queue.places[name].ticket.cost for name in new]
    return past


@settings(max_examples=50, deadline=None)
@given(
    needs=NEEDS,
    tenants=st.lists(st.sampled_from("abc"), min_size=40, max_size=40),
    chance=st.randoms(use_true_random=False),
)
def test_nobody_is_overtaken_by_more_than_its_own_cost_and_one(
    needs: list[int], tenants: list[str], chance: Random
) -> None:
    """On one worker, from when it is its tenant's turn, which it stays until it is granted: a
    newcomer's, behind those that came before it; and from when nobody else in its band is being
    overtaken, for that is one at a time."""
    others = [
        ticket(f"{i:03}", tenants[i], need_tokens=need, cost=need, deadline_ms=10**6 + i)
        for i, need in enumerate(needs)
    ]
    first = ticket("large", "0", need_tokens=60, cost=60, deadline_ms=10**5)
    past = cost_past(first, others, chance)
    assert sum(past) < 60 + 30


def test_two_tenants_whose_large_ones_alternate_do_not_hold_each_other_up() -> None:
    """Each has a large request with the earliest deadline and many small ones: whose turn it is
    alternates, and who is overtaken is remembered all the same."""
    queue = pool(worker(sequences=50, tokens=100))
    enter(queue, *(ticket(f"0{i}", "z") for i in range(10)))
    for tenant in "ab":
        enter(queue, ticket(f"{tenant}-large", tenant, need_tokens=95, cost=95, deadline_ms=9))
        enter(queue, *(ticket(f"{tenant}{i:03}", tenant) for i in range(100)))
    assert not {"a-large", "b-large"} & set(queue.places)
    order: list[str] = []
    for _ in range(120):
        gone = min(queue.places)
        queue.leave(gone, actual_cost=10, now_ms=0)
        order.append(gone)
    assert {"a-large", "b-large"} <= set(order)


def test_a_worker_kept_for_batch_is_not_kept_from_interactive() -> None:
    """INV-8 goes before."""
    queue = pool(worker(sequences=9, tokens=100))
    enter(queue, *(batch(f"s{i}", need_tokens=20, cost=20) for i in range(5)))
    enter(queue, batch("large", need_tokens=90, cost=5, deadline_ms=100), batch("s9"))
    queue.leave("s0", actual_cost=20, now_ms=1)
    assert "s9" in queue.places
    assert queue.order.bypass[Band.BATCH].worker == "w"
    enter(queue, batch("s8", "b"))
    assert "s8" not in queue.places
    enter(queue, ticket("i", "c"))
    assert "i" in queue.places


def test_a_worker_that_interactive_fills_again_is_not_kept_for_batch_for_ever() -> None:
    """Other batch goes on after half a minute."""
    queue = pool(worker(sequences=9, tokens=100))
    enter(queue, ticket("i1", need_tokens=50))
    enter(queue, batch("large", need_tokens=90, cost=5, deadline_ms=10**6), batch("s1", "b"))
    assert queue.order.bypass[Band.BATCH].worker == "w"
    enter(queue, batch("s2", "b"))
    assert "s2" in queue.waiting
    for now_ms in range(0, KEPT_MS + 1, TTL_MS // 3):
        queue.renew_all(["i1", "large", "s1", "s2"], now_ms=now_ms)
        queue.take_up("s1", now_ms=now_ms)
    assert "s2" in queue.places


@pytest.mark.parametrize("dies", [True, False])
def test_a_kept_worker_that_dies_is_kept_no_more(dies: bool) -> None:
    """Another is kept at the next overtaking; one that lives is filled by nobody else."""
    queue = pool(worker("w1", 9, tokens=100), worker("w2", 9, tokens=100))
    enter(queue, ticket("i1", need_tokens=50), ticket("i2", need_tokens=30))
    enter(queue, ticket("large", need_tokens=90, cost=15), ticket("s1"), ticket("s2"))
    kept = queue.order.bypass[Band.INTERACTIVE]
    assert (kept.ticket_id, kept.worker) == ("large", "w2")
    if dies:
        queue.report(worker("w2", well_until_ms=1), now_ms=2)
    enter(queue, ticket("s3", need_tokens=50), now_ms=2)
    assert queue.places["s3"].worker == "w1"
    assert kept.worker == ("w1" if dies else "w2")
    for name in ("i1", "s3") if dies else ("i2", "s1"):
        assert "large" in queue.waiting
        queue.leave(name, actual_cost=1, now_ms=3)
    assert queue.places["large"].worker == ("w1" if dies else "w2")


def test_room_that_is_made_is_not_filled_with_batch_meanwhile() -> None:
    """Two must go for one: the first that came back does not take its place again."""
    queue = pool(worker(sequences=9, tokens=100))
    enter(
        queue, batch("b1", need_tokens=50), batch("b2", need_tokens=50), batch("b3", need_tokens=10)
    )
    enter(queue, ticket("i", "z", need_tokens=90))
    assert queue.rooms["w"].asked_back == 2
    queue.give_back("b1", now_ms=1)
    assert set(queue.places) == {"b2"}
    queue.give_back("b2", now_ms=1)
    assert set(queue.places) == {"i", "b3"}
