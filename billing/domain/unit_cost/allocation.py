"""The pool's bill shared out over what caused it, to the pico-unit.

A span of paid time bears its part of the bill by the GPU time that was paid in it. Within it the
work that was done takes its own share, and what was paid and not worked is idle. Where the model
finds more work than time was paid, all of the span's bill goes to the work, and this is said.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import NamedTuple

from billing.domain.invoicing.rounding import largest_remainder
from billing.domain.unit_cost.paid_time import PaidSpan
from billing.domain.unit_cost.quantities import half_up
from billing.domain.unit_cost.step_model import EngineWork, WorkUnits


class NothingPaid(ValueError):
    """No time was paid for: there is nothing that could bear a bill."""


class Cell(NamedTuple):
    """The work of one group in one span."""

    span: int
    """Its place among the spans."""
    group: str
    work: EngineWork


class Charged(NamedTuple):
    """A group's part of the bill, in pico-units, by what caused it."""

    prefill_pico: int = 0
    decode_pico: int = 0
    kv_pico: int = 0

    @property
    def cost_pico(self) -> int:
        """All of it."""
        return sum(self)

    def plus(self, other: "Charged") -> "Charged":
        """Both together."""
        return Charged(*(mine + its for mine, its in zip(self, other, strict=True)))


class Allocation(NamedTuple):
    """`charged` and `idle_pico` sum to the bill exactly."""

    charged: dict[str, Charged]
    idle_pico: int
    busy_gpu_ms: Fraction
    """GPU time of the work, of each span at most what was paid."""
    over_spans: int
    """Spans with more work than was paid for."""


def bill_pico(gpu_ms: int, *, price_per_gpu_hour_pico: int, operations_pico: int) -> int:
    """Hours times their price, rounded to a whole pico-unit, and the operations cost."""
    return half_up(Fraction(gpu_ms * price_per_gpu_hour_pico, 3_600_000)) + operations_pico


def allocate(
    bill: int, spans: Sequence[PaidSpan], cells: Iterable[Cell], units: WorkUnits
) -> Allocation:
    """Share `bill` out. The order of cells decides nothing. Raises NothingPaid."""
    if not any(span.gpu_ms for span in spans):
        raise NothingPaid("no GPU time was paid for")
    of_span = _merged(cells)
    charged: defaultdict[str, Charged] = defaultdict(Charged)
    idle, busy_units, over = 0, 0, 0
    bills = largest_remainder(bill, [span.gpu_ms for span in spans])
    for place, (span, span_bill) in enumerate(zip(spans, bills, strict=True)):
        groups = sorted(of_span.get(place, {}).items())
        weights = [part for _, work in groups for part in units.of(work)]
        paid, worked = span.gpu_ms * units.per_gpu_ms, sum(weights)
        over += worked > paid
        busy_units += min(worked, paid)
        *parts, unused = largest_remainder(span_bill, [*weights, max(0, paid - worked)])
        idle += unused
        for index, (group, _) in enumerate(groups):
            own = Charged(*parts[3 * index : 3 * index + 3])
            charged[group] = charged[group].plus(own)
    return Allocation(dict(charged), idle, units.gpu_ms(busy_units), over)


def _merged(cells: Iterable[Cell]) -> dict[int, dict[str, EngineWork]]:
    """One work a span and group."""
    found: defaultdict[int, dict[str, EngineWork]] = defaultdict(dict)
    for cell in cells:
        before = found[cell.span].get(cell.group)
        found[cell.span][cell.group] = cell.work if before is None else before.plus(cell.work)
    return found
