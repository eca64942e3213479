"""How long a wait is taken to be."""

from gateway.domain.queue.prediction import Backlog, Speed, ahead_of


def test_nothing_ahead_is_no_wait_and_nothing_known_is_none() -> None:
    """The first need not wait by what is known; of an unknown or idle pool nothing is said."""
    speed = Speed()
    assert speed.wait_ms(0, 100) == 0
    assert speed.wait_ms(10, 100) is None
    speed.departed(100, 2_000)
    assert speed.wait_ms(10, 0) is None


def test_the_wait_is_work_ahead_over_littles_law() -> None:
    """200 weighted tokens run for 3 s each: 50 are gone in 0.75 s."""
    speed = Speed()
    for _ in range(50):
        speed.departed(100, 3_000)
    assert 740 <= (speed.wait_ms(50, 200) or 0) <= 750


def test_the_mean_follows_what_ends_now() -> None:
    """After a few dozen departures what went before is forgotten."""
    speed = Speed()
    for _ in range(100):
        speed.departed(100, 60_000)
    for _ in range(64):
        speed.departed(100, 1_000)
    assert 1_000 <= (speed.wait_ms(100, 100) or 0) < 2_500


def test_others_go_before_as_far_as_their_counters_are_behind() -> None:
    """Own work first; of others what brings them level, and no more than they have."""
    behind = Backlog(counter=0, waiting=1_000, weight=2)
    little = Backlog(counter=0, waiting=5, weight=1)
    past = Backlog(counter=90_000, waiting=1_000, weight=1)
    assert ahead_of(10_000, 20, 1, [behind, little, past]) == 20 + 60 + 5
