"""How a bill that does not divide is shared out, and what has no share."""

from fractions import Fraction

import pytest
from unit_cost_examples import DAY, a_round_model, some_work

from billing.domain.unit_cost.allocation import Cell, NothingPaid, allocate, bill_pico
from billing.domain.unit_cost.paid_time import DAY_MS, HOUR_MS, PaidSpan
from billing.domain.unit_cost.step_model import EngineWork

UNITS = a_round_model().units(Fraction(20))
PREFILL = some_work(1, uncached=1_000, output=0, held_ms=0)
"""40 ms of a replica, 160 of a GPU, all of it prefill."""


def a_span(gpu_ms: int, day: int = 0) -> PaidSpan:
    """A day."""
    return PaidSpan(DAY + day * DAY_MS, DAY + (day + 1) * DAY_MS, gpu_ms)


def test_of_equal_remainders_the_first_name_has_the_pico() -> None:
    """Whatever the order of the cells: three alike, a bill of four."""
    cells = [Cell(0, group, PREFILL) for group in "abc"]
    for ordered in (cells, cells[::-1], [cells[1], cells[2], cells[0]]):
        found = allocate(4, [a_span(480)], ordered, UNITS)
        assert {name: each.cost_pico for name, each in found.charged.items()} == {
            "a": 2,
            "b": 1,
            "c": 1,
        }
        assert (found.idle_pico, found.over_spans) == (0, 0)


def test_what_was_paid_and_not_worked_is_idle() -> None:
    """160 ms of 640; then 160 of 159, which is too much and all of it."""
    found = allocate(1_000, [a_span(640)], [Cell(0, "a", PREFILL)], UNITS)
    assert (found.charged["a"].prefill_pico, found.idle_pico, found.over_spans) == (250, 750, 0)
    assert found.busy_gpu_ms == 160
    found = allocate(1_000, [a_span(159)], [Cell(0, "a", PREFILL)], UNITS)
    assert (found.charged["a"].cost_pico, found.idle_pico, found.over_spans) == (1_000, 0, 1)
    assert found.busy_gpu_ms == 159


def test_a_span_bears_its_own_part_of_the_bill() -> None:
    """By what was paid in it; one without hours nothing, and its work no cost."""
    cells = [Cell(0, "a", PREFILL), Cell(1, "b", PREFILL), Cell(2, "c", PREFILL)]
    found = allocate(900, [a_span(160), a_span(320, 1), a_span(0, 2)], cells, UNITS)
    assert [found.charged[name].cost_pico for name in "abc"] == [300, 300, 0]
    assert (found.idle_pico, found.over_spans) == (300, 1)


def test_work_is_told_by_what_caused_it() -> None:
    """Two tokens out are 0.4 ms, a thousand tokens held for 100 ms 0.1 ms, of a replica."""
    work = EngineWork(output_tokens=2, token_ms_twice=2 * 1_000 * 100)
    found = allocate(1_000, [a_span(2)], [Cell(0, "a", work)], UNITS)
    assert found.charged["a"] == (0, 800, 200)


def test_nothing_paid_bears_nothing() -> None:
    """Not even a bill of nothing."""
    for bill in (0, 5):
        with pytest.raises(NothingPaid):
            allocate(bill, [a_span(0)], [Cell(0, "a", PREFILL)], UNITS)


def test_the_bill_is_rounded_once() -> None:
    """An hour and a half at 3 pico an hour is 4.5: 5; and the operations."""
    gpu_ms = HOUR_MS * 3 // 2
    assert bill_pico(gpu_ms, price_per_gpu_hour_pico=3, operations_pico=10) == 15
