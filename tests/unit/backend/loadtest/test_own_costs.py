"""What the generator took, of the schedule alone."""

import pytest

from backend.loadtest.own_costs import OwnCosts
from backend.loadtest.run_clock import RunClock


class Cpu:
    """Processor time that a test sets."""

    def __init__(self) -> None:
        self.used_s = 0.0

    def __call__(self) -> float:
        return self.used_s


def test_neither_what_comes_before_nor_the_drain_makes_up_for_the_schedule() -> None:
    """Busy and late for ten seconds, then idle for ninety: both figures are of the ten."""
    cpu = Cpu()
    costs = OwnCosts(RunClock(100.0, speed=2.0), 20_000.0, cpu)
    for tick in range(90, 100):
        costs.looked(float(tick), float(tick))
    for tick in range(100, 110):
        cpu.used_s += 0.9
        costs.looked(tick + 0.02, tick + 0.05)
    for tick in range(110, 200):
        costs.looked(float(tick), float(tick))
    costs.end(200.0)
    assert costs.lag_p99_ms == pytest.approx(30)
    assert costs.cpu_share == pytest.approx(8.1 / 9.95)


def test_a_stall_across_the_end_is_of_the_schedule() -> None:
    """It was due before."""
    costs = OwnCosts(RunClock(0.0), 1_000.0, Cpu())
    costs.looked(0.98, 1.5)
    costs.looked(1.6, 9.0)
    assert costs.lag_p99_ms == pytest.approx(520)


def test_a_run_that_ends_sooner_is_measured_until_then() -> None:
    """Also one that ends between two looks; one that never began took nothing."""
    cpu = Cpu()
    costs = OwnCosts(RunClock(0.0), 10_000.0, cpu)
    costs.looked(0.0, 0.0)
    cpu.used_s = 0.25
    costs.end(0.5)
    cpu.used_s = 9.0
    costs.looked(0.6, 0.6)
    assert costs.cpu_share == 0.5
    never = OwnCosts(RunClock(5.0), 10_000.0, cpu)
    never.end(1.0)
    assert (never.cpu_share, never.lag_p99_ms) == (0.0, 0.0)
