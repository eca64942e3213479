"""In which order the queue is served, and who is thrown out of it."""

import random
from collections.abc import Iterator

import pytest
from simulated_core import Played, played, request, text

from backend.simulated.flags import SchedulerFlags
from backend.simulated.kv_pool import KvPool
from backend.simulated.place import Place
from backend.simulated.request import EndReason, SimulatedRequest
from backend.simulated.waiting import WaitingQueue


def in_order(play: Played) -> list[SimulatedRequest]:
    """Who starts, one at a time."""
    play.drain()
    return [r for r, _ in play.ended]


def waiting_behind(play: Played, *priorities: int | None) -> list[SimulatedRequest]:
    play.submit(request(text(9, 9000), 3, priority=100))
    play.step()
    queued = [
        request(text(5, 100 * n), 1, priority=priority) for n, priority in enumerate(priorities, 1)
    ]
    play.submit(*queued)
    return queued


@pytest.mark.parametrize(
    ("flags", "order"),
    [
        ({"enable_priority_scheduling": True}, [2, 1, 3, 0]),
        (
            {"enable_priority_scheduling": True, "schedule_low_priority_values_first": True},
            [1, 3, 2, 0],
        ),
        ({}, [0, 1, 2, 3]),
    ],
)
def test_better_priorities_go_first(flags: dict[str, object], order: list[int]) -> None:
    """Higher ones, or lower ones by flag; none at all is the worst; equals in order of arrival."""
    play = played(max_running_requests=1, disable_priority_preemption=True, **flags)
    queued = waiting_behind(play, None, 1, 5, 1)
    assert in_order(play)[1:] == [queued[n] for n in order]


def test_a_full_queue_refuses_the_arrival() -> None:
    """Without priorities always."""
    play = played(max_running_requests=1, max_queued_requests=2)
    waiting_behind(play, 1, 2)
    late = request(text(5, 900), 1, priority=50)
    assert play.submit(late) == [late]
    play.drain()
    assert late not in [r for r, _ in play.ended]
    assert play.replica.totals.refused == 1


@pytest.mark.parametrize(("arrives", "thrown_out"), [(5, 1), (1, None), (0, None), (None, None)])
def test_a_better_arrival_throws_out_the_least_preferred(
    arrives: int | None, thrown_out: int | None
) -> None:
    """The latest of the worst; only for one strictly better."""
    play = played(max_running_requests=1, max_queued_requests=3, enable_priority_scheduling=True)
    queued = waiting_behind(play, 1, 1, 9)
    late = request(text(5, 900), 1, priority=arrives)
    assert play.submit(late) == [late if thrown_out is None else queued[thrown_out]]


def test_who_is_thrown_out_is_found_without_a_look_at_everyone() -> None:
    """And is the same one that a look at everyone finds, whoever leaves meanwhile."""
    flags = SchedulerFlags(
        max_total_tokens=1000, enable_priority_scheduling=True, max_queued_requests=40
    )
    queue = WaitingQueue(flags, KvPool(1000, 1, cached=False, eviction_policy="lru"))
    queue.places = _NeverWalked()
    drawn = random.Random(4)  # noqa: S311 - a test's own draws
    waiting: list[Place] = []
    for number in range(2_000):
        place = Place(request(text(1, number + 1), priority=drawn.randrange(9)), flags)
        if len(waiting) == 40:
            worst = max(waiting, key=lambda each: (each.priority, each.entered))
            expected = worst if place.priority < worst.priority else place
        else:
            expected = None
        assert queue.enter(place) is expected
        waiting = [each for each in (*waiting, place) if each is not expected]
        if drawn.random() < 0.3:
            gone = waiting.pop(drawn.randrange(len(waiting)))
            queue.remove(gone)
            if drawn.random() < 0.5:
                assert queue.enter(gone) is None
                waiting.append(gone)


class _NeverWalked(list[Place]):
    def __iter__(self) -> Iterator[Place]:
        raise AssertionError("every submit would cost as much as the queue is long")


def preemption(arrives: int, **flags: object) -> tuple[Played, SimulatedRequest]:
    play = played(max_running_requests=2, enable_priority_scheduling=True, **flags)
    first, second = (
        request(text(10, 100), 9, priority=0),
        request(text(10, 200), 9, priority=1, writes=600_000),
    )
    play.submit(first, second)
    play.run(3)
    play.submit(request(text(10, 300), 2, priority=arrives))
    play.step()
    return play, first


def test_a_much_better_arrival_takes_the_place_of_the_worst() -> None:
    """Who waits, is computed again, and ends in full."""
    play, victim = preemption(11)
    assert play.kinds[-1] == "prefill"
    assert (victim.retractions, victim.generated) == (1, 3)
    assert play.replica.load().waiting == 1
    assert play.replica.totals.preempted_requests == 1
    play.drain()
    assert (victim, EndReason.LENGTH) in play.ended
    assert victim.generated == 9


def test_who_comes_back_does_not_count_for_the_hit_rate() -> None:
    """Though its prompt was still cached: the last step computed no first-time prompt."""
    play, victim = preemption(11)
    while play.replica.load().retracted:
        play.step()
    assert play.steps[-1].kind == "prefill"
    assert play.steps[-1].new_tokens == 3
    assert victim.cached_tokens == 0
    assert play.replica.load().cache_hit_rate == 0.0


def test_the_difference_has_to_be_more_than_the_threshold() -> None:
    """10 is not."""
    play, victim = preemption(10)
    assert play.kinds[-1] == "decode"
    assert victim.retractions == 0
    play, victim = preemption(10, priority_scheduling_preemption_threshold=9)
    assert victim.retractions == 1


def test_preemption_can_be_switched_off() -> None:
    """Then the better one waits."""
    play, victim = preemption(100, disable_priority_preemption=True)
    assert play.kinds[-1] == "decode"
    assert victim.retractions == 0


def test_the_longest_cached_prefix_goes_first_under_lpm() -> None:
    """Whoever came first."""
    play = played(max_running_requests=1, schedule_policy="lpm")
    play.submit(request(text(50), 3))
    play.step()
    little = request(text(40) + text(5, 700), 1)
    none = request(text(45, 2000), 1)
    much = request(text(50) + text(9, 800), 1)
    play.submit(none, little, much)
    assert in_order(play)[1:] == [much, little, none]


def test_of_prompts_with_a_common_beginning_one_goes_first_under_lpm() -> None:
    """So that the others find it cached: they yield to those that share nothing."""
    play = played(max_running_requests=2, schedule_policy="lpm")
    pioneer = request(text(40) + text(5, 700), 1)
    follower = request(text(40) + text(5, 800), 1)
    other = request(text(45, 2000), 1)
    play.submit(pioneer, follower, other)
    assert play.step().generated == [pioneer, other]
    play.drain()
    assert follower.cached_tokens == 40


def test_with_more_than_128_waiting_lpm_is_fcfs() -> None:
    """Matching them all would cost too much."""
    play = played(max_total_tokens=9000, max_running_requests=1, schedule_policy="lpm")
    play.submit(request(text(50), 2))
    play.step()
    queue = [request(text(4, 1000 + 10 * n), 1) for n in range(128)]
    matching = request(text(60), 1)
    play.submit(*queue, matching)
    play.run(2)
    assert queue[0].started_ms is not None
    play.step()
    assert [r for r, _ in play.ended][2] is matching
