"""What is asked of the unit cost, checked whole: texts in, exact numbers out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction

from billing.domain.money import PICO_DIGITS, PICO_PER_UNIT, UnknownCurrency, currency_exponent
from billing.domain.unit_cost.hosted import REFERENCE_RATES, HostedRate
from billing.domain.unit_cost.hours_file import (
    HOUR_DECIMALS,
    InvalidHours,
    check_hours,
    parse_gpu_hours,
    read_hours_file,
)
from billing.domain.unit_cost.paid_time import DAY_MS, PaidTime, paid_by_day, paid_evenly
from billing.domain.unit_cost.quantities import InvalidQuantity, parse_decimal
from billing.domain.unit_cost.report import Costs
from billing.domain.unit_cost.step_model import (
    DEFAULT_PROFILE,
    PROFILES,
    StepModel,
    with_coefficients,
)

DAYS_MAX = 400
NAME_MAX = 200
PRICE_DECIMALS = 6
LIST = "list"
LIST_PREFIX = f"{LIST}:"
OWN_RATE = "hosted"
_EARLIEST_MS = 946_684_800_000


class CostBy(StrEnum):
    """What the bill is shown by; days and hours are of UTC, hours those of the day over all
    days."""

    TENANT = "tenant"
    MODEL = "model"
    CLASS = "class"
    DAY = "day"
    HOUR = "hour"


class InvalidQuestion(ValueError):
    """What is wrong, and in which field."""

    def __init__(self, name: str, what: str) -> None:
        super().__init__(what)
        self.name = name


@dataclass(frozen=True, kw_only=True)
class Asked:
    """As it was written. Of `pool_hours`, `gpus`, `hours_file`, `hours` and `from_samples` exactly
    one says what was paid for."""

    since_ms: int
    until_ms: int
    price_per_gpu_hour: str
    currency: str = "USD"
    operations_cost: str = "0"
    model: str | None = None
    by: str = CostBy.TENANT
    pool_hours: str | None = None
    gpus: str | None = None
    hours_file: str | None = None
    """The file's text."""
    hours: Sequence[tuple[str, str]] | None = None
    """Dates and GPU-hours."""
    from_samples: bool = False
    hosted: Sequence[str] = ()
    hosted_input: str | None = None
    hosted_output: str | None = None
    profile: str = DEFAULT_PROFILE.name
    coefficients: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Question:
    """The same, understood."""

    since_ms: int
    until_ms: int
    model: str | None
    by: CostBy
    costs: Costs
    paid: PaidTime | None
    """None: as long as workers were seen."""
    paid_from: str
    """The field that says what was paid for."""
    step_model: StepModel
    providers: tuple[str, ...]
    """Hosted providers whose prices Postgres knows."""
    rates: Mapping[str, HostedRate]
    """Hosted prices that hold for every model, by name."""


def question_of(asked: Asked, *, now_ms: int) -> Question:
    """Raises InvalidQuestion."""
    _check_time(asked, now_ms)
    if asked.by not in list(CostBy):
        raise InvalidQuestion("by", f"must be one of {', '.join(CostBy)}")
    if asked.model is not None and not _is_name(asked.model):
        raise InvalidQuestion("model", f"must be a model's id of at most {NAME_MAX} characters")
    costs = _costs(asked)
    providers, rates = _hosted(asked)
    paid_from = _paid_from(asked)
    return Question(
        since_ms=asked.since_ms,
        until_ms=asked.until_ms,
        model=asked.model,
        by=CostBy(asked.by),
        costs=costs,
        paid=_paid(asked, paid_from),
        paid_from=paid_from,
        step_model=_step_model(asked),
        providers=providers,
        rates=rates,
    )


def _check_time(asked: Asked, now_ms: int) -> None:
    if asked.since_ms < _EARLIEST_MS:
        raise InvalidQuestion("since", "must not be before the year 2000")
    if asked.since_ms >= asked.until_ms:
        raise InvalidQuestion("since", "must be before the end")
    if asked.until_ms > now_ms:
        raise InvalidQuestion("until", "must not lie in the future: nothing has been paid for yet")
    if asked.until_ms - asked.since_ms > DAYS_MAX * DAY_MS:
        raise InvalidQuestion("since", f"must be at most {DAYS_MAX} days before the end")


def _costs(asked: Asked) -> Costs:
    try:
        currency_exponent(asked.currency)
    except UnknownCurrency as error:
        raise InvalidQuestion("currency", f"{asked.currency[:10]!r} is not known here") from error
    return Costs(
        asked.currency,
        _pico("price_per_gpu_hour", asked.price_per_gpu_hour),
        _pico("operations_cost", asked.operations_cost),
    )


def _pico(name: str, text: str, *, decimals_max: int = PICO_DIGITS) -> int:
    return int(_decimal(name, text, decimals_max=decimals_max) * PICO_PER_UNIT)


def _decimal(name: str, text: str, *, decimals_max: int) -> Fraction:
    try:
        return parse_decimal(text, decimals_max=decimals_max)
    except InvalidQuantity as error:
        raise InvalidQuestion(name, str(error)) from error


def _paid_from(asked: Asked) -> str:
    given = {
        "pool_hours": asked.pool_hours is not None,
        "gpus": asked.gpus is not None,
        "hours_file": asked.hours_file is not None,
        "hours": asked.hours is not None,
        "from_samples": asked.from_samples,
    }
    chosen = [name for name, is_given in given.items() if is_given]
    if not chosen:
        raise InvalidQuestion("pool_hours", "is wanted, or another way to say what was paid for")
    if len(chosen) > 1:
        raise InvalidQuestion(chosen[1], f"cannot go with {chosen[0].replace('_', ' ')}")
    return chosen[0]


def _paid(asked: Asked, paid_from: str) -> PaidTime | None:
    since, until = asked.since_ms, asked.until_ms
    try:
        if asked.pool_hours is not None:
            return paid_evenly(since, until, parse_gpu_hours(asked.pool_hours))
        if asked.gpus is not None:
            gpus = parse_decimal(asked.gpus, decimals_max=HOUR_DECIMALS)
            return paid_evenly(since, until, int(gpus * (until - since)))
        if asked.hours_file is not None:
            return paid_by_day(since, until, read_hours_file(asked.hours_file, since, until))
        if asked.hours is not None:
            rows = [(f"item {n}", list(pair)) for n, pair in enumerate(asked.hours)]
            return paid_by_day(since, until, check_hours(rows, since, until))
    except (InvalidQuantity, InvalidHours) as error:
        raise InvalidQuestion(paid_from, str(error)) from error
    return None


def _step_model(asked: Asked) -> StepModel:
    profile = PROFILES.get(asked.profile)
    if profile is None:
        raise InvalidQuestion("profile", f"must be one of {', '.join(PROFILES)}")
    try:
        return with_coefficients(profile, asked.coefficients)
    except InvalidQuantity as error:
        raise InvalidQuestion("coefficient", str(error)) from error


def _hosted(asked: Asked) -> tuple[tuple[str, ...], dict[str, HostedRate]]:
    if asked.hosted and asked.currency != "USD":
        raise InvalidQuestion(
            "hosted", "is priced in USD: say the price in the bill's currency instead"
        )
    providers: dict[str, None] = {}
    rates: dict[str, HostedRate] = {}
    for name in asked.hosted:
        listed = name.removeprefix(LIST_PREFIX)
        if name == LIST:
            rates |= {LIST_PREFIX + each: rate for each, rate in REFERENCE_RATES.items()}
        elif listed == name:
            if not _is_name(name):
                raise InvalidQuestion("hosted", "must be a provider's name")
            providers[name] = None
        elif listed in REFERENCE_RATES:
            rates[name] = REFERENCE_RATES[listed]
        else:
            raise InvalidQuestion("hosted", f"{LIST_PREFIX} has {', '.join(REFERENCE_RATES)}")
    if (asked.hosted_input is None) != (asked.hosted_output is None):
        missing = "hosted_input" if asked.hosted_input is None else "hosted_output"
        raise InvalidQuestion(missing, "is wanted too")
    if asked.hosted_input is not None and asked.hosted_output is not None:
        rates[OWN_RATE] = HostedRate(
            _per_token("hosted_input", asked.hosted_input),
            _per_token("hosted_output", asked.hosted_output),
        )
    return tuple(providers), rates


def _per_token(name: str, text: str) -> int:
    """Pico-units per token of a price per million tokens."""
    return int(_decimal(name, text, decimals_max=PRICE_DECIMALS) * 10**PRICE_DECIMALS)


def _is_name(text: str) -> bool:
    return 0 < len(text) <= NAME_MAX and text.isprintable()
