"""What one tenant repeats does not hide what befalls others."""

from gateway.telemetry.shares import Shares


class _Clock:
    """It stands until it is moved."""

    def __init__(self) -> None:
        self.us = 0

    def now_us(self) -> int:
        """As it was set."""
        return self.us


def test_a_flood_of_one_tenant_leaves_room_for_others() -> None:
    """A fifth of all is its own for one reason; each of the others finds as much."""
    shares = Shares(50, _Clock().now_us)
    assert sum(shares.take("globex", "no_capacity") for _ in range(2_000)) == 10
    assert [shares.take("acme", "no_capacity") for _ in range(11)] == [True] * 10 + [False]
    assert shares.take("globex", "no_worker")


def test_a_flood_of_all_leaves_room_for_what_is_rare() -> None:
    """A fifth is nobody's but a failed worker's and a bug's."""
    shares = Shares(50, _Clock().now_us)
    taken = sum(shares.take(f"t-{number}", "no_capacity") for number in range(1_000))
    assert taken == 40
    assert [shares.take("acme", "worker_failed") for _ in range(11)] == [True] * 10 + [False]
    assert not shares.take("acme", "internal_error")


def test_it_fills_evenly_and_holds_one_seconds_worth() -> None:
    """What is not used is not saved up."""
    clock = _Clock()
    shares = Shares(50, clock.now_us)
    assert sum(shares.take("acme", "x") for _ in range(100)) == 10
    clock.us += 99_999
    assert not shares.take("acme", "x")
    clock.us += 1
    assert [shares.take("acme", "x") for _ in range(2)] == [True, False]
    clock.us += 3_600_000_000
    assert sum(shares.take("acme", "x") for _ in range(100)) == 10


def test_none_a_second_is_none_at_all_and_one_is_one() -> None:
    """Small numbers are exact."""
    assert not Shares(0, _Clock().now_us).take("acme", "worker_failed")
    assert [Shares(1, _Clock().now_us).take("acme", "x")] == [True]


def test_who_came_long_ago_takes_no_memory() -> None:
    """Ten thousand tenants, one after the other."""
    clock = _Clock()
    shares = Shares(50, clock.now_us)
    for number in range(10_000):
        clock.us += 200_000
        assert shares.take(f"t-{number}", "x")
    assert len(shares._of) <= 1_000
