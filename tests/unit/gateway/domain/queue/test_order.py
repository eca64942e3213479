"""Which request is granted next, where, and what is taken back for it."""

from queue_examples import batch, enter, granted, pool, ticket, worker

from gateway.domain.queue.tickets import TAKEN_BACK_MAX, Band, PlaceState


def asked_back(queue_pool: object) -> set[str]:
    """Places that were asked back."""
    places = getattr(queue_pool, "places")  # noqa: B009
    return {name for name, each in places.items() if each.state is PlaceState.TAKEN_BACK}


def test_the_least_full_worker_is_taken() -> None:
    """By the fuller of its two ceilings."""
    queue = pool(worker("w1", 4, tokens=100), worker("w2", 4, tokens=100))
    enter(queue, ticket("1", need_tokens=60), ticket("2"), ticket("3"), ticket("4"))
    assert {name: each.worker for name, each in queue.places.items()} == {
        "1": "w1", "2": "w2", "3": "w2", "4": "w2",
    }  # fmt: skip


def test_where_the_first_is_too_large_the_next_is_granted() -> None:
    """Work goes on."""
    queue = pool(worker(sequences=9, tokens=50))
    enter(queue, ticket("1"), ticket("large", need_tokens=45), ticket("2"))
    assert set(queue.places) == {"1", "2"}


def test_promoted_batch_goes_before_other_batch_and_not_before_interactive() -> None:
    """Whatever its tenant was served."""
    queue = pool(worker(sequences=1))
    enter(queue, ticket("x", "x"))
    enter(queue, batch("b1", "a", deadline_ms=100), batch("b2", "b", promote_ms=5, deadline_ms=999))
    enter(queue, ticket("i", "c"))
    queue.leave("x", actual_cost=1, now_ms=6)
    queue.leave("i", actual_cost=1, now_ms=6)
    assert granted(queue) == ["i", "b2"]


def test_batch_stops_at_its_own_ceiling() -> None:
    """Interactive goes on to the other."""
    queue = pool(worker(sequences=3, batch_sequences=2))
    enter(queue, batch("b1"), batch("b2"), batch("b3"), ticket("i"))
    assert set(queue.places) == {"b1", "b2", "i"}


def test_as_few_as_it_takes_are_taken_back_the_newest_first() -> None:
    """Of one worker, and none that has sent a token."""
    queue = pool(worker("w1", sequences=9, tokens=40), worker("w2", sequences=9, tokens=40))
    for now_ms, name in enumerate(["b1", "b2", "b3", "b4"]):
        enter(queue, batch(name, need_tokens=20), now_ms=now_ms)
    queue.began("b4", now_ms=4)
    enter(queue, ticket("i", "z", need_tokens=20), now_ms=5)
    assert asked_back(queue) == {"b3"}
    enter(queue, ticket("j", "z", need_tokens=40), now_ms=6)
    assert asked_back(queue) == {"b3"}
    enter(queue, ticket("k", "z", need_tokens=20), now_ms=7)
    assert asked_back(queue) == {"b3", "b1"} or asked_back(queue) == {"b3", "b2"}


def test_neither_interactive_nor_promoted_nor_thrice_taken_back_is_taken_back() -> None:
    """The first is not batch, the second would miss its deadline, the third has had enough."""
    queue = pool(worker(sequences=3))
    enter(queue, batch("promoted", promote_ms=1))
    enter(queue, ticket("i"), batch("thrice", taken_back=TAKEN_BACK_MAX))
    enter(queue, ticket("j"), now_ms=1)
    assert asked_back(queue) == set()


def test_of_one_tenant_several_have_room_made_at_once() -> None:
    """One that waits behind another of its tenant does not wait for its round trip."""
    queue = pool(worker(sequences=3))
    enter(queue, batch("b1"), batch("b2"), batch("b3"))
    enter(queue, ticket("i1", "z"), ticket("i2", "z"))
    assert len(asked_back(queue)) == 2


def test_one_who_cannot_be_helped_does_not_keep_others_from_it() -> None:
    """The large one waits for interactive to end; for the small one batch is asked back."""
    queue = pool(worker(sequences=2, tokens=100))
    enter(queue, ticket("i", need_tokens=50), batch("b"))
    queue.take_up("b", now_ms=0)
    enter(queue, ticket("large", "y", need_tokens=90), ticket("small", "z"))
    assert asked_back(queue) == {"b"}


def test_thrice_taken_back_waits_with_interactive() -> None:
    """It is batch in price, and takes back nobody."""
    queue = pool(worker(sequences=1))
    enter(queue, batch("b"), batch("b-thrice", "c", taken_back=TAKEN_BACK_MAX))
    assert "b-thrice" in [t.id for t in queue.lines[Band.INTERACTIVE].candidates()]
    assert asked_back(queue) == set()
