"""Pools whose unit cost a person can check with a calculator."""

from collections.abc import Mapping
from fractions import Fraction

from billing.domain.unit_cost.allocation import Cell
from billing.domain.unit_cost.hosted import HostedRate
from billing.domain.unit_cost.paid_time import HOUR_MS, PaidTime, paid_evenly
from billing.domain.unit_cost.report import Costs, Sold, UnitCost, unit_cost
from billing.domain.unit_cost.step_model import (
    DEFAULT_PROFILE,
    EngineWork,
    StepModel,
    with_coefficients,
)

DAY = 1_795_996_800_000
"""2026-11-30, midnight UTC, in Unix milliseconds."""
PICO = 10**12
ROUND = {
    "a0": "8", "a1": "0.1", "a2": "0.00002", "b0": "0", "b1": "0.04", "b2": "0", "step": "20",
}  # fmt: skip
"""0.04 ms an uncached token, 0.2 ms an output token, 0.000001 ms a token-millisecond."""


def a_round_model() -> StepModel:
    """With constants that divide well."""
    return with_coefficients(DEFAULT_PROFILE, ROUND)


def some_work(
    requests: int, *, uncached: int, cached: int = 0, output: int, held_ms: int
) -> EngineWork:
    """So many alike; all their tokens held for `held_ms`."""
    return EngineWork(
        prefills=requests,
        uncached_tokens=requests * uncached,
        attended_twice=requests * uncached * (2 * cached + uncached),
        output_tokens=requests * output,
        token_ms_twice=requests * 2 * (uncached + cached + output // 2) * held_ms,
        decode_ms=requests * held_ms,
        decode_gaps=requests * (output - 1),
    )


def two_tenants() -> tuple[list[Cell], list[Sold]]:
    """A day of acme and globex; `tests/golden/unit_cost/two_tenants.md` has the sums."""
    acme = some_work(90_000, uncached=800, cached=1_200, output=400, held_ms=10_000)
    globex = some_work(36_000, uncached=1_000, output=100, held_ms=2_000)
    sold = [
        Sold("acme", "m", "USD", 90_000, 180_000_000, 108_000_000, 36_000_000, 60 * PICO, 0),
        Sold("globex", "m", "USD", 36_000, 36_000_000, 0, 3_600_000, 5 * PICO, 2),
        Sold("globex", "m", "JPY", 10, 10_000, 0, 1_000, 700 * PICO, 0),
    ]
    return [Cell(0, "acme", acme), Cell(0, "globex", globex)], sold


def cost_of_two_tenants(
    hosted: Mapping[str, Mapping[str, HostedRate]] | None = None,
) -> UnitCost:
    """Four GPUs for a day at 2.50, and 24.00 of operations."""
    cells, sold = two_tenants()
    return unit_cost(
        costs=Costs("USD", 25 * PICO // 10, 24 * PICO),
        model=a_round_model(),
        paid=paid_evenly(DAY, DAY + 24 * HOUR_MS, 4 * 24 * HOUR_MS),
        cells=cells,
        hours={9: cells[0].work, 10: cells[1].work},
        sold=sold,
        hosted=hosted or {},
    )


def at_the_knee(requests: int, *, price_pico: int, hosted: Mapping[str, HostedRate]) -> UnitCost:
    """An hour of one replica whose knee is 6.5 requests a second of 2,000 tokens in (1,200 of them
    cached) and 400 out: of 23,400 requests it is busy for the whole of it."""
    work = some_work(requests, uncached=800, cached=1_200, output=400, held_ms=1)
    # 800 * 5/26 ms = 1/6.5 s.
    model = StepModel(
        name="knee", source="a test", a0=Fraction(0), a1=Fraction(0), a2=Fraction(0),
        b0=Fraction(0), b1=Fraction(5, 26), b2=Fraction(0), step=Fraction(1),
    )  # fmt: skip
    paid: PaidTime = paid_evenly(DAY, DAY + HOUR_MS, 4 * HOUR_MS)
    sold = Sold("a", "m", "USD", requests, requests * 2_000, requests * 1_200, requests * 400, 0, 0)
    return unit_cost(
        costs=Costs("USD", price_pico, 0),
        model=model,
        paid=paid,
        cells=[Cell(0, "a", work)],
        hours={0: work},
        sold=[sold],
        hosted={name: {"m": rate} for name, rate in hosted.items()},
    )
