"""Which traces are kept."""

import random

import pytest
from memory_ports import StandingClock

from gateway.telemetry.trace_keeping import Keeping


@pytest.mark.parametrize(("ratio_permille", "drawn"), [(0, 0), (1000, 2000)])
def test_none_and_all_are_exact(ratio_permille: int, drawn: int) -> None:
    """Without luck."""
    keeping = Keeping(StandingClock(), ratio_permille=ratio_permille, kept_per_s=0)
    assert sum(keeping.draw() for _ in range(2000)) == drawn


def test_so_many_of_a_thousand_are_drawn() -> None:
    """As the ratio says, within five standard deviations."""
    random.seed(7)
    keeping = Keeping(StandingClock(), ratio_permille=100, kept_per_s=0)
    assert abs(sum(keeping.draw() for _ in range(10_000)) - 1000) < 150


def test_an_outage_keeps_so_many_a_second_and_no_more() -> None:
    """A burst takes one second's worth; what is not used is not saved up."""
    clock = StandingClock()
    keeping = Keeping(clock, ratio_permille=0, kept_per_s=10)

    def kept() -> int:
        return sum(keeping.may_keep(f"t-{number}", "worker_failed") for number in range(1000))

    assert kept() == 10
    clock.advance(99)
    assert kept() == 0
    clock.advance(1)
    assert kept() == 1
    clock.advance(3_600_000)
    assert kept() == 10


def test_with_none_a_second_nothing_is_kept() -> None:
    """Then the lot alone decides."""
    clock = StandingClock()
    keeping = Keeping(clock, ratio_permille=0, kept_per_s=0)
    clock.advance(3_600_000)
    assert not keeping.may_keep("acme", "worker_failed")
