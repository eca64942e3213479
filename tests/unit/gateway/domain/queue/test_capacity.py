"""A worker's room, at its edges."""

import pytest
from queue_examples import ticket, worker

from gateway.domain.queue.capacity import WorkerRoom


def filled() -> WorkerRoom:
    """Three of four sequences, two as batch, 30 of 40 tokens."""
    room = worker(sequences=4, batch_sequences=3, tokens=40)
    room.add(ticket("x", sequences=3, need_tokens=30))
    return room


@pytest.mark.parametrize(
    ("sequences", "need", "as_batch", "takes"),
    [(1, 10, False, True), (2, 10, False, False), (1, 11, False, False), (1, 10, True, False)],
)
def test_ceilings_are_reached_and_not_passed(
    sequences: int, need: int, as_batch: bool, takes: bool
) -> None:
    """Each of the three by itself."""
    asked = ticket("t", sequences=sequences, need_tokens=need)
    assert filled().takes(asked, as_batch=as_batch, now_ms=0) is takes


def test_an_empty_worker_takes_what_is_larger_than_its_ceilings() -> None:
    """Else it would wait for ever."""
    room = worker(sequences=1, tokens=10)
    assert room.takes(ticket("t", sequences=9, need_tokens=99), as_batch=True, now_ms=0)


def test_a_worker_that_is_not_well_takes_nothing() -> None:
    """From the instant on."""
    room = worker(well_until_ms=5)
    assert room.takes(ticket("t"), as_batch=False, now_ms=4)
    assert not room.takes(ticket("t"), as_batch=False, now_ms=5)


def test_fill_is_the_fuller_of_the_two() -> None:
    """In millionths."""
    room = filled()
    assert room.fill == 750_000
    room.tokens = 38
    assert room.fill == 950_000
    room.remove(ticket("x", sequences=3, need_tokens=38))
    assert (room.running, room.tokens, room.fill) == (0, 0, 0)


@pytest.mark.parametrize(
    ("sequences", "need", "as_batch", "width"),
    [(1, 4, False, 250), (1, 20, False, 500), (1, 4, True, 333), (9, 4, False, 1_000)],
)
def test_the_width_of_a_request_is_the_larger_part_that_it_needs(
    sequences: int, need: int, as_batch: bool, width: int
) -> None:
    """In thousandths of a worker, at most all of it, whatever runs there."""
    asked = ticket("t", sequences=sequences, need_tokens=need)
    assert filled().width_permille(asked, as_batch=as_batch) == width
