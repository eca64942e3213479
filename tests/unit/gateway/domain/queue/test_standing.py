"""What is told of a tenant's standing is what the queue itself would tell its requests."""

import random

import pytest
from queue_examples import batch, enter, pool, ticket, worker
from queue_shares import shares_of

from gateway.domain.queue.prediction import Speed
from gateway.domain.queue.standing import standing_of, wait_of
from gateway.domain.queue.tickets import Band, Queued

TENANTS = "abcde"


@pytest.mark.parametrize("seed", range(40))
def test_it_is_what_the_next_request_is_told(seed: int) -> None:
    """Tenants of several weights and sizes, of which some only run and some have nothing: tokens
    ahead of the first that waits, and of one that then comes, are those of the queue's answers."""
    chance = random.Random(seed)  # noqa: S311
    queue = pool(worker(sequences=4, batch_sequences=3))
    sizes = {name: chance.randrange(1, 500) for name in TENANTS}
    weights = {name: chance.choice([1, 2, 4]) for name in TENANTS}
    for number in range(chance.choice([6, 9, 12, 60])):
        name, make = chance.choice(TENANTS), chance.choice([ticket, batch])
        enter(queue, make(f"{number:03}", name, cost=sizes[name], weight=weights[name]))
    compared = 0
    for name in TENANTS:
        for band, make in ((Band.INTERACTIVE, ticket), (Band.BATCH, batch)):
            shown = standing_of(name, band, weights[name], shares_of(queue))
            waiting = queue.lines[band].waiting.get(name, [])
            assert shown.requests == len(waiting)
            if waiting:
                first = queue.renew(waiting[0].id, now_ms=0)
                assert isinstance(first, Queued)
                assert shown.ahead_tokens == first.ahead_tokens
                compared += 1
            else:
                assert shown.ahead_tokens is None
            one = make(f"z-{name}-{band}", name, cost=sizes[name], weight=weights[name])
            told = queue.enter(one, max_queued=10**6, now_ms=0)
            assert isinstance(told, Queued)
            assert told.own_ahead == shown.requests
            assert shown.next_ahead_tokens == told.ahead_tokens
            queue.leave(one.id, actual_cost=None, now_ms=0)
    assert compared >= 1


def test_a_tenant_that_is_new_comes_before_who_waits_with_much() -> None:
    """Fairness shows: not all that waits is ahead of it."""
    queue = pool(worker(sequences=1))
    enter(queue, *(ticket(f"{n:02}", "busy", cost=100) for n in range(50)))
    shares = shares_of(queue)
    assert standing_of("new", Band.INTERACTIVE, 1, shares).next_ahead_tokens == 0
    assert standing_of("busy", Band.INTERACTIVE, 1, shares).next_ahead_tokens == 4_900
    assert standing_of("new", Band.BATCH, 1, shares).next_ahead_tokens == 4_900


def test_who_was_served_while_others_waited_comes_after_them() -> None:
    """Also where nothing of it waits any more: what runs has counted."""
    queue = pool(worker(sequences=1))
    enter(queue, ticket("r0", "c"), ticket("r3", "a", cost=40))
    enter(queue, ticket("r1", "b", cost=30), ticket("r2", "b", cost=30))
    queue.leave("r0", actual_cost=10, now_ms=0)
    assert queue.places["r3"].ticket.tenant == "a"
    shown = standing_of("a", Band.INTERACTIVE, 1, shares_of(queue))
    assert (shown.requests, shown.ahead_tokens, shown.next_ahead_tokens) == (0, None, 40)
    told = queue.enter(ticket("r4", "a", cost=40), max_queued=9, now_ms=0)
    assert isinstance(told, Queued)
    assert told.ahead_tokens == 40


def test_the_wait_is_in_proportion() -> None:
    """As `Speed` would say of so many tokens, but for a rounding."""
    speed = Speed()
    speed.departed(100, 2_000)
    whole = speed.wait_ms(5_000, 300)
    assert whole == 33_333
    for ahead in (0, 1, 250, 5_000):
        told = wait_of(ahead, all_tokens=5_000, all_wait_ms=whole)
        exact = speed.wait_ms(ahead, 300)
        assert told is not None
        assert exact is not None
        assert abs(told - exact) <= 1


def test_of_an_unknown_speed_only_nothing_is_known() -> None:
    """Nobody ahead: no wait; somebody: nobody knows."""
    assert wait_of(0, all_tokens=0, all_wait_ms=None) == 0
    assert wait_of(1, all_tokens=5, all_wait_ms=None) is None
