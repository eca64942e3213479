"""What `/billing/v1/unit-cost` takes and answers. Amounts are exact texts of `currency`, shares and
hours texts of six decimals, times RFC 3339 in UTC."""

from collections.abc import Mapping
from datetime import datetime

import msgspec

from billing.domain.unit_cost.question import CostBy
from billing.domain.unit_cost.step_model import DEFAULT_PROFILE
from gateway.http.openapi_answers import Instant


class _Strict(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    pass


class DayHoursBody(_Strict):
    """GPU-hours that were paid for on a day of UTC."""

    date: str
    gpu_hours: str


class UnitCostBody(_Strict):
    """Of `pool_hours` (GPU-hours), `gpus` (all the time), `hours` (by day) and `from_samples` one
    says what was paid for. Amounts and constants are decimal texts."""

    since: datetime
    until: datetime
    price_per_gpu_hour: str
    currency: str = "USD"
    operations_cost: str = "0"
    model: str | None = None
    by: str = CostBy.TENANT.value
    pool_hours: str | None = None
    gpus: str | None = None
    hours: list[DayHoursBody] | None = None
    from_samples: bool = False
    hosted: list[str] = []
    hosted_input: str | None = None
    hosted_output: str | None = None
    profile: str = DEFAULT_PROFILE.name
    coefficients: dict[str, str] = {}


class BillAnswer(_Strict):
    """`busy` is what the work was charged, `idle` what was paid and not worked: they sum to
    `total`. In `over_spans` of the times paid for there was more work than hours."""

    total: str
    price_per_gpu_hour: str
    operations_cost: str
    gpu_hours: str
    busy_gpu_hours: str
    idle_gpu_hours: str
    busy: str
    idle: str
    utilisation: str
    over_spans: int


class StepModelAnswer(_Strict):
    """What work was computed by; it is not measured."""

    name: str
    source: str
    measured: bool
    step_ms: str
    coefficients: Mapping[str, str | None]


class GroupCostAnswer(_Strict):
    """`cost` is prefill, decode and KV; with the others' and the idle time it sums to the bill.
    `margin` is revenue less cost, without `idle_share`. Revenue in other currencies is apart."""

    group: str
    requests: int
    prompt_tokens: int
    cached_prompt_tokens: int
    output_tokens: int
    prefill: str
    decode: str
    kv: str
    cost: str
    idle_share: str
    revenue: str
    margin: str
    other_revenue: Mapping[str, str]
    unpriced_requests: int


class HourAnswer(_Strict):
    """An hour of the day (UTC) over all days; null where nothing was paid for."""

    hour: int
    paid_gpu_hours: str
    busy_gpu_hours: str
    utilisation: str | None


class TokenCostsAnswer(_Strict):
    """Null where there is nothing to divide by."""

    request: str | None
    million_tokens: str | None
    million_output_all: str | None
    million_prompt: str | None
    million_uncached: str | None
    million_output: str | None


class HostedRateAnswer(_Strict):
    """Per million tokens."""

    input: str
    output: str


class ComparisonAnswer(_Strict):
    """What the pool's tokens would have cost there; above `break_even_utilisation` that is dearer
    than the pool, as it is at `break_even_price_factor` times its price, or at a GPU-hour of
    `break_even_gpu_hour`. `saved` is negative where the pool was dearer."""

    name: str
    prices: Mapping[str, HostedRateAnswer]
    cost: str
    break_even_utilisation: str | None
    break_even_price_factor: str | None
    break_even_gpu_hour: str
    saved: str


class UnitCostAnswer(_Strict):
    """The pool's bill: whom it is for, what tokens cost, and what hosted would have."""

    since: Instant
    until: Instant
    model: str | None
    by: str
    currency: str
    bill: BillAnswer
    step_model: StepModelAnswer
    items: list[GroupCostAnswer]
    hours: list[HourAnswer]
    at_full_use: TokenCostsAnswer
    now: TokenCostsAnswer
    hosted: list[ComparisonAnswer]
    summary: list[str]
    notes: list[str]
    complete: bool
    complete_through: Instant | None
    provisional_requests: int
