"""The steps of a pool, one by one."""

import pytest
from queue_examples import TTL_MS, batch, enter, granted, pool, ticket, worker

from gateway.domain.queue.fairness import UNITS
from gateway.domain.queue.pool import Pool
from gateway.domain.queue.pool_state import TAKE_UP_MS
from gateway.domain.queue.tickets import (
    TAKEN_BACK_WAIT_MS,
    Band,
    Granted,
    NoWorker,
    Parked,
    PlaceState,
    Queued,
    QueueFull,
    StillQueued,
    TakenBack,
    TooLong,
    Unknown,
)


def full() -> Pool:
    """One runs, `next` waits."""
    queue = pool(worker(sequences=1))
    enter(queue, ticket("runs"), ticket("next"))
    return queue


def test_who_has_room_is_granted_by_the_reply() -> None:
    """And by no message."""
    queue = pool()
    assert queue.enter(ticket("1"), max_queued=0, now_ms=0) == Granted("w")
    assert (queue.messages, queue.places["1"].state) == ([], PlaceState.HELD)


def test_who_must_wait_is_told_where_it_stands_and_granted_by_a_message() -> None:
    """Once."""
    queue = full()
    answer = queue.enter(ticket("other"), max_queued=9, now_ms=0)
    assert answer == Queued(own_ahead=1, ahead_tokens=10, wait_ms=None)
    queue.leave("runs", actual_cost=10, now_ms=5)
    assert granted(queue) == ["next"]
    assert queue.renew("next", now_ms=6) == Granted("w")
    assert granted(queue) == []


def test_where_it_stands_is_told_to_whoever_asks() -> None:
    """Else only that it still waits: it lives on all the same, and a grant is told."""
    queue = full()
    enter(queue, ticket("other"), now_ms=0)
    queue.leave("runs", actual_cost=10, now_ms=TTL_MS - 2)
    queue.park("next", max_queued=9, now_ms=TTL_MS - 2)
    enter(queue, ticket("waits", "b"), now_ms=1)
    ids = ["other", "waits", "next", "nobody"]
    answers = queue.renew_all(ids, standing=False, now_ms=TTL_MS - 1)
    assert answers == [Granted("w"), StillQueued(), Parked(), Unknown()]
    queue.take_up("other", now_ms=TTL_MS - 1)
    queue.tick(now_ms=2 * TTL_MS - 2)
    assert set(queue.waiting) == {"waits", "next"}


def test_a_grant_that_is_not_taken_up_passes_on() -> None:
    """After a second, uncharged; who comes then enters again."""
    queue = full()
    enter(queue, ticket("3", "b"))
    queue.leave("runs", actual_cost=10, now_ms=0)
    queue.tick(now_ms=TAKE_UP_MS)
    assert granted(queue) == ["3", "next"]
    assert queue.take_up("3", now_ms=TAKE_UP_MS) == Unknown()


def test_entering_again_takes_up_a_grant_whose_message_was_lost() -> None:
    """Its gateway knows now."""
    queue = full()
    queue.leave("runs", actual_cost=10, now_ms=0)
    assert queue.enter(ticket("next"), max_queued=0, now_ms=1) == Granted("w")
    queue.tick(now_ms=TAKE_UP_MS + 1)
    assert queue.places["next"].state is PlaceState.HELD


def test_so_many_may_wait_and_no_more() -> None:
    """Of this tenant."""
    queue = full()
    assert queue.enter(ticket("3"), max_queued=1, now_ms=0) == QueueFull(1)
    assert isinstance(queue.enter(ticket("4", "b"), max_queued=1, now_ms=0), Queued)
    assert "3" not in queue.waiting


@pytest.mark.parametrize(("wait_ms", "refused"), [(499, True), (501, False)])
def test_who_cannot_be_served_in_time_is_refused_at_once(wait_ms: int, refused: bool) -> None:
    """Where even half of what is predicted is past its deadline."""
    queue = full()
    queue.speed.departed(10_000, 1_000)
    asked = ticket("3", deadline_ms=wait_ms, entered_ms=0)
    enter(queue, ticket("2", deadline_ms=1))
    answer = queue.enter(asked, max_queued=9, now_ms=0)
    if refused:
        assert answer == TooLong(1_000)
    else:
        assert answer == Queued(1, 10, 1_000)


def test_who_does_not_want_to_wait_is_granted_or_refused_at_once() -> None:
    """Also where nothing is known of the pool's speed."""
    assert full().enter(ticket("3", deadline_ms=0), max_queued=9, now_ms=0) == TooLong(0)
    assert pool().enter(ticket("3", deadline_ms=0), max_queued=9, now_ms=0) == Granted("w")


def test_where_no_worker_is_well_nobody_is_taken_in() -> None:
    """Neither of a store that came back empty, nor once the last worker is lost: before anything
    else is looked at, and nothing is held. Whoever waits goes on waiting, and is known."""
    assert Pool(TTL_MS).enter(ticket("1"), max_queued=0, now_ms=0) == NoWorker()
    queue = pool(worker("w1", 1, well_until_ms=50), worker("w2", 1, well_until_ms=40))
    enter(queue, ticket("1"), ticket("2"), ticket("waits"), now_ms=49)
    for asked in (ticket("new", "b"), ticket("late", deadline_ms=50), ticket("own")):
        assert queue.enter(asked, max_queued=0, now_ms=50) == NoWorker()
    assert set(queue.waiting) == {"2", "waits"}
    assert isinstance(queue.renew("waits", now_ms=50), Queued)
    assert isinstance(queue.enter(ticket("waits"), max_queued=0, now_ms=50), Queued)
    queue.report(worker("w2", 1), now_ms=51)
    assert queue.enter(ticket("new", "b"), max_queued=0, now_ms=51) == QueueFull(0)


def test_whoever_waits_to_its_deadline_is_gone() -> None:
    """At that instant."""
    queue = pool(worker(sequences=1))
    enter(queue, ticket("runs"), ticket("next", deadline_ms=50))
    assert isinstance(queue.renew("next", now_ms=49), Queued)
    assert queue.renew("next", now_ms=50) == Unknown()


def test_what_nobody_renews_is_gone_after_its_time_to_live() -> None:
    """Taking a place back does not put that off: whoever holds it may be dead."""
    queue = pool(worker(sequences=1))
    enter(queue, batch("b"))
    enter(queue, ticket("i"), now_ms=TTL_MS - 1)
    assert queue.places["b"].state is PlaceState.TAKEN_BACK
    queue.tick(now_ms=TTL_MS)
    assert set(queue.places) == {"i"}


def test_a_place_taken_back_is_given_back_or_began_first() -> None:
    """Whichever comes first; given back, it waits again."""
    for began in (True, False):
        queue = pool(worker(sequences=1))
        enter(queue, batch("b"), ticket("i"))
        assert queue.renew("b", now_ms=1) == TakenBack()
        if began:
            assert queue.began("b", now_ms=1)
            assert queue.give_back("b", now_ms=1) == Granted("w")
        else:
            assert isinstance(queue.give_back("b", now_ms=1), Queued)
            assert queue.waiting["b"].ticket.taken_back == 1
        assert queue.rooms["w"].asked_back == 0


def test_given_back_at_its_deadline_it_waits_for_a_while_again() -> None:
    """It was us. One that has more time keeps what it has."""
    for deadline_ms, until_ms in ((9, 9 + TAKEN_BACK_WAIT_MS), (60_000, 60_000)):
        queue = pool(worker(sequences=1))
        enter(queue, batch("b", deadline_ms=deadline_ms), ticket("i", deadline_ms=10**6))
        assert isinstance(queue.give_back("b", now_ms=9), Queued)
        assert set(queue.places) == {"i"}
        for now_ms in range(9, until_ms, TTL_MS - 1):
            queue.renew_all(["b", "i"], now_ms=now_ms)
            queue.take_up("i", now_ms=now_ms)
        assert isinstance(queue.renew("b", now_ms=until_ms - 1), Queued)
        assert queue.renew("b", now_ms=until_ms) == Unknown()


def test_who_was_let_wait_before_is_not_refused_for_what_is_predicted() -> None:
    """It waits until its deadline; past that it is gone."""
    for is_new, now_ms, expected in (
        (True, 100, TooLong(150)),
        (False, 100, Queued(1, 15, 150)),
        (False, 150, TooLong(0)),
    ):
        queue = pool(worker(sequences=1))
        enter(queue, ticket("0", cost=10))
        queue.leave("0", actual_cost=10, now_ms=100)
        enter(queue, ticket("1", cost=10), ticket("2", "b", cost=20, deadline_ms=149), now_ms=100)
        asked = ticket("3", "b", deadline_ms=150)
        queue.take_up("1", now_ms=now_ms)
        assert queue.enter(asked, max_queued=9, is_new=is_new, now_ms=now_ms) == expected


def test_parked_it_waits_for_its_tenant_alone() -> None:
    """It is passed over until it is unparked: the earliest of its tenant."""
    queue = pool(worker(sequences=1))
    enter(queue, ticket("1", deadline_ms=20), ticket("2", deadline_ms=10))
    assert queue.park("1", max_queued=9, now_ms=0) == Parked()
    queue.take_up("2", now_ms=0)
    assert queue.park("2", max_queued=9, now_ms=0) == Parked()
    assert queue.places == {}
    queue.unpark("other", "", now_ms=1)
    assert queue.places == {}
    queue.unpark("a", "", now_ms=1)
    assert set(queue.places) == {"2"}
    queue.tick(now_ms=20)
    assert queue.renew("1", now_ms=20) == Unknown()


def test_unparked_is_the_earliest_of_its_lot() -> None:
    """Whichever gateway it is of; of another lot none."""
    queue = pool(worker(sequences=9))
    parked = [
        ticket("1", lot="k1", deadline_ms=10),
        ticket("2", lot="k2", deadline_ms=30),
        ticket("3", lot="k2", deadline_ms=20, gateway="g2"),
    ]
    enter(queue, *parked)
    for each in parked:
        queue.park(each.id, max_queued=9, now_ms=0)
    queue.unpark("a", "k3", now_ms=1)
    queue.unpark("b", "k2", now_ms=1)
    assert queue.places == {}
    queue.unpark("a", "k2", now_ms=1)
    assert set(queue.places) == {"3"}


def test_what_ends_is_told_to_who_is_parked_elsewhere() -> None:
    """To the first of its lot and to the first of its tenant, once a gateway; not to its own
    gateway, which knows, and not where it never ran."""
    queue = pool(worker(sequences=9))
    parked = [
        ticket("1", lot="k1", deadline_ms=10, gateway="g2"),
        ticket("2", lot="k2", deadline_ms=20, gateway="g3"),
        ticket("3", lot="k3", deadline_ms=30, gateway="g2"),
        ticket("4", lot="k4", deadline_ms=40, gateway="g1"),
    ]
    running = [ticket(lot, lot=lot) for lot in ("k1", "k2", "k3", "k4", "k5")]
    enter(queue, *parked, *running, ticket("never", lot="k2"), ticket("z", "b", lot="k1"))
    for each in parked:
        queue.park(each.id, max_queued=9, now_ms=0)
    told = {}
    for name in ("k1", "k2", "k3", "k4", "k5", "z"):
        queue.messages.clear()
        queue.leave(name, actual_cost=5, now_ms=1)
        assert all(sent.is_look and not sent.is_grant for sent in queue.messages)
        told[name] = [(sent.gateway, sent.ticket_id) for sent in queue.messages]
    first = ("g2", "1")
    assert told == {
        "k1": [first],
        "k2": [("g3", "2"), first],
        "k3": [("g2", "3")],
        "k4": [first],
        "k5": [first],
        "z": [],
    }
    queue.messages.clear()
    queue.leave("never", actual_cost=None, now_ms=1)
    assert queue.messages == []


def test_where_so_many_wait_it_is_not_parked_but_gone() -> None:
    """Whoever else of the tenant waits is counted, parked or not; its place is free for the next,
    and its tenant not charged."""
    queue = pool(worker(sequences=2))
    enter(queue, ticket("1"), ticket("2"), ticket("3"), ticket("b1", "b"))
    assert queue.park("1", max_queued=2, now_ms=0) == Parked()
    assert set(queue.waiting) == {"1", "3"}
    assert queue.park("2", max_queued=1, now_ms=0) == QueueFull(2)
    assert (set(queue.places), set(queue.waiting)) == ({"b1", "3"}, {"1"})
    assert queue.lines[Band.INTERACTIVE].counters.active["a"] == 10 * UNITS
    assert queue.renew("2", now_ms=0) == Unknown()
    assert queue.park("1", max_queued=0, now_ms=0) == Parked()


def test_a_store_that_forgot_takes_up_what_runs() -> None:
    """Once, with its room, and what began is not taken back."""
    queue = pool(worker(sequences=1))
    for _ in range(2):
        queue.resume(batch("b"), "w", began=False, now_ms=0)
    assert queue.rooms["w"].running == 1
    queue.resume(batch("b"), "w", began=True, now_ms=0)
    enter(queue, ticket("i"))
    assert queue.places["b"].state is PlaceState.BEGAN


def test_a_place_that_moves_takes_its_room_along() -> None:
    """What was asked back of it too."""
    queue = pool(worker("w1", 1), worker("w2", 1, well_until_ms=0))
    enter(queue, batch("b"), ticket("i"))
    queue.move("b", "w2", now_ms=1)
    assert [queue.rooms[w].asked_back for w in ("w1", "w2")] == [0, 1]
    assert set(queue.places) == {"b", "i"}
