"""For how long a worker is kept, and for how long none is kept afterwards."""

import pytest
from queue_examples import HOUR_MS, batch, enter, pool, ticket, worker

from gateway.domain.queue.bypass import KEPT_MS, Bypass
from gateway.domain.queue.pool import Pool
from gateway.domain.queue.tickets import Band, Ticket


def kept(asked: Ticket, *, workers: int = 1, by: Ticket | None = None, at_ms: int = 0) -> Bypass:
    """Of workers of 20 sequences (as batch 10) and 100 tokens one is kept for this request."""
    bypass = Bypass()
    rooms = [worker(f"w{i}", 20, 10, tokens=100) for i in range(workers)]
    bypass.passed([asked], by or ticket("by", cost=asked.cost), rooms, at_ms)
    assert bypass.worker == "w0"
    return bypass


@pytest.mark.parametrize(
    ("asked", "workers", "rest_ms"),
    [
        (ticket("all", sequences=20), 1, 9_000),
        (ticket("more than all", sequences=90, need_tokens=900), 1, 9_000),
        (ticket("half of its tokens", need_tokens=50), 1, 4_000),
        (ticket("of two workers", sequences=20), 2, 4_000),
        (ticket("of ten", sequences=20), 10, 0),
        (ticket("a tenth", sequences=2), 1, 0),
        (batch("a tenth, as batch a fifth", sequences=2), 1, 1_000),
    ],
)
def test_the_rest_is_as_long_as_what_idled_at_most_is_a_tenth(
    asked: Ticket, workers: int, rest_ms: int
) -> None:
    """After a second."""
    bypass = kept(asked, workers=workers, by=batch("by"), at_ms=5_000)
    bypass.clear(6_000)
    assert bypass.rests_until_ms == 6_000 + rest_ms
    assert (bypass.ticket_id, bypass.worker) == ("", "")


def test_no_rest_is_longer_than_that_of_the_longest_keeping() -> None:
    """A worker that is kept and full idles nothing, and nobody looks at it."""
    bypass = kept(ticket("wide", sequences=20))
    bypass.clear(HOUR_MS)
    assert bypass.rests_until_ms == HOUR_MS + 9 * KEPT_MS


def test_a_worker_that_is_lost_costs_no_rest() -> None:
    """Another is kept at the next overtaking."""
    asked = ticket("wide", sequences=20)
    bypass = kept(asked)
    bypass.lose()
    assert (bypass.ticket_id, bypass.worker) == ("wide", "")
    bypass.passed([asked], ticket("by"), [worker("w9", 20)], 1_000)
    assert (bypass.worker, bypass.kept_ms, bypass.rests_until_ms) == ("w9", 1_000, 0)


def test_a_narrow_one_whose_turn_it_is_keeps_it_from_another() -> None:
    """Also while it is not looked at: what it was overtaken by is not forgotten."""
    bypass = Bypass(rests_until_ms=HOUR_MS)
    rooms = [worker(sequences=20)]
    wide, one, other = ticket("wide", sequences=20), ticket("one"), ticket("other")
    bypass.passed([wide], ticket("by", cost=4), rooms, 0)
    assert (bypass.ticket_id, bypass.tokens) == ("wide", 4)
    bypass.passed([wide, one, other], ticket("by", cost=4), rooms, 0)
    assert (bypass.ticket_id, bypass.tokens) == ("one", 4)
    bypass.passed([wide, other], ticket("by", cost=4), rooms, 0)
    assert (bypass.ticket_id, bypass.tokens) == ("one", 4)
    bypass.passed([one], ticket("by", cost=6), rooms, 0)
    assert bypass.worker == "w"


@pytest.mark.parametrize("band", Band)
def test_a_worker_is_kept_for_half_a_minute(band: Band) -> None:
    """Whichever band it is for: a stream on it may run for longer. Then others go on at once."""
    queue: Pool = pool(worker(sequences=3))
    queue.ttl_ms = HOUR_MS
    wide = ticket("wide", "a", band=band, sequences=3, cost=1)
    enter(queue, ticket("long", "r"), wide, ticket("past", "z", band=band))
    assert queue.order.bypass[band].worker == "w"
    enter(queue, ticket("next", "z", band=band))
    queue.tick(now_ms=KEPT_MS - 1)
    assert "next" in queue.waiting
    queue.tick(now_ms=KEPT_MS)
    assert {"next", "long"} <= set(queue.places)
    assert queue.order.bypass[band].rests_until_ms == 10 * KEPT_MS
    assert queue.order.bypass[Band(1 - band)].rests_until_ms == 0
