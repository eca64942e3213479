"""The pool's bill is shared out exactly, whatever was done and paid."""

import random
from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st
from unit_cost_examples import DAY, PICO

from billing.domain.unit_cost.allocation import Allocation, Cell, allocate, bill_pico
from billing.domain.unit_cost.paid_time import DAY_MS, HOUR_MS, PaidSpan, paid_evenly
from billing.domain.unit_cost.report import Costs, Sold, unit_cost
from billing.domain.unit_cost.step_model import DEFAULT_PROFILE, EngineWork, WorkUnits

COUNTS = st.integers(0, 10**9)
WORK = st.builds(
    EngineWork, COUNTS, COUNTS, st.integers(0, 10**15), COUNTS, st.integers(0, 10**16), COUNTS,
    COUNTS,
)  # fmt: skip
DAYS = 3
CELLS = st.lists(
    st.builds(Cell, st.integers(0, DAYS - 1), st.sampled_from("abcd"), WORK), max_size=12
)
HOURS = st.lists(st.integers(0, 10**10), min_size=DAYS, max_size=DAYS).filter(any)
BILL = st.integers(0, 10**20)
UNITS = DEFAULT_PROFILE.units(Fraction(30))


def spans_of(hours: list[int]) -> list[PaidSpan]:
    """A day each."""
    return [
        PaidSpan(DAY + day * DAY_MS, DAY + (day + 1) * DAY_MS, gpu_ms)
        for day, gpu_ms in enumerate(hours)
    ]


def all_of(found: Allocation) -> int:
    """What was given to anyone, and idle."""
    return sum(each.cost_pico for each in found.charged.values()) + found.idle_pico


@given(BILL, HOURS, CELLS)
@settings(max_examples=200, deadline=None)
def test_it_sums_to_the_bill(bill: int, hours: list[int], cells: list[Cell]) -> None:
    """To the pico-unit, each part from 0 on, and busy time is never more than was paid."""
    found = allocate(bill, spans_of(hours), cells, UNITS)
    assert all_of(found) == bill
    assert found.idle_pico >= 0
    assert all(part >= 0 for each in found.charged.values() for part in each)
    assert 0 <= found.busy_gpu_ms <= sum(hours)


@given(BILL, HOURS, CELLS, st.randoms(use_true_random=False))
@settings(max_examples=100, deadline=None)
def test_the_order_of_cells_decides_nothing(
    bill: int, hours: list[int], cells: list[Cell], chance: random.Random
) -> None:
    """Nor whether a group's work comes in one cell or in several."""
    found = allocate(bill, spans_of(hours), cells, UNITS)
    mixed = [*cells, *(Cell(cell.span, cell.group, EngineWork()) for cell in cells)]
    chance.shuffle(mixed)
    assert allocate(bill, spans_of(hours), mixed, UNITS) == found


@given(BILL, HOURS, CELLS, st.integers(0, DAYS - 1))
@settings(max_examples=100, deadline=None)
def test_a_tenant_without_work_pays_nothing(
    bill: int, hours: list[int], cells: list[Cell], span: int
) -> None:
    """And changes nobody's part."""
    found = allocate(bill, spans_of(hours), cells, UNITS)
    with_idler = allocate(bill, spans_of(hours), [*cells, Cell(span, "A", EngineWork())], UNITS)
    assert with_idler.charged.pop("A").cost_pico == 0
    assert with_idler == found


@given(BILL, HOURS, CELLS, st.integers(2, 1_000))
@settings(max_examples=100, deadline=None)
def test_twice_the_pool_and_twice_the_work_is_twice_the_bill(
    bill: int, hours: list[int], cells: list[Cell], times: int
) -> None:
    """Each part grows by as much, up to the rounding of the smaller one."""
    small = allocate(bill, spans_of(hours), cells, UNITS)
    more = [Cell(cell.span, cell.group, scaled(cell.work, times)) for cell in cells]
    large = allocate(bill * times, spans_of([each * times for each in hours]), more, UNITS)
    assert large.busy_gpu_ms == small.busy_gpu_ms * times
    assert large.over_spans == small.over_spans
    rounding = times * 2 * DAYS
    assert abs(large.idle_pico - small.idle_pico * times) <= rounding
    for group, charged in small.charged.items():
        for before, after in zip(charged, large.charged[group], strict=True):
            assert abs(after - before * times) <= rounding


@given(HOURS, CELLS)
@settings(max_examples=100, deadline=None)
def test_work_costs_the_same_however_idle_the_pool_is(hours: list[int], cells: list[Cell]) -> None:
    """Where a day has room: its work costs its GPU time at the price, to the pico-unit each part
    may be off, and what is idle costs nobody."""
    room = sum(UNITS.of(cell.work).total for cell in cells) // UNITS.per_gpu_ms + 1
    paid = [each + room for each in hours]
    price = 2 * PICO
    bill = bill_pico(sum(paid), price_per_gpu_hour_pico=price, operations_pico=0)
    found = allocate(bill, spans_of(paid), cells, UNITS)
    for group, charged in found.charged.items():
        units = sum(UNITS.of(cell.work).total for cell in cells if cell.group == group)
        exact = UNITS.gpu_ms(units) * price / HOUR_MS
        assert abs(charged.cost_pico - exact) <= 4 * DAYS


@given(
    st.integers(0, 10**15),
    st.integers(1, 10**9),
    st.dictionaries(st.sampled_from("abcd"), WORK, min_size=1),
)
@settings(max_examples=100, deadline=None)
def test_groups_and_idle_are_the_bill_and_idle_is_shared_out_whole(
    operations: int, gpu_ms: int, works: dict[str, EngineWork]
) -> None:
    """In the whole answer too, with groups that sold and did no work."""
    sold = [Sold(group, "m", "USD", 1, 9, 3, 2, 5, 0) for group in "xab"]
    found = unit_cost(
        costs=Costs("USD", 235 * PICO // 100, operations),
        model=DEFAULT_PROFILE,
        paid=paid_evenly(DAY, DAY + HOUR_MS, gpu_ms),
        cells=[Cell(0, group, work) for group, work in works.items()],
        hours={},
        sold=sold,
        hosted={},
    )
    charged = sum(each.charged.cost_pico for each in found.groups)
    assert charged + found.idle_pico == found.bill_pico
    shared = sum(each.idle_share_pico for each in found.groups)
    assert shared == (found.idle_pico if charged else 0)
    assert [each.group for each in found.groups] == sorted({*works, "x", "a", "b"})
    assert sum(each.margin_pico for each in found.groups) == 15 - charged


def scaled(work: EngineWork, times: int) -> EngineWork:
    """So many times the same."""
    return EngineWork(*(count * times for count in work))


def test_units_are_whole() -> None:
    """Nothing is cut off by them."""
    model = DEFAULT_PROFILE
    units: WorkUnits = model.units(Fraction(7, 3))
    exact = model.a2 / (2 * Fraction(7, 3)) * model.gpus
    assert units.gpu_ms(units.token_ms_twice) == exact
