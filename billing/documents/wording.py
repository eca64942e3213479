"""How a document says quantities, amounts, days and periods to people: in English, with commas
between thousands."""

from datetime import date, datetime
from zoneinfo import ZoneInfo

from billing.domain.invoicing.lines import (
    CACHED_INPUT_TOKENS,
    INPUT_TOKENS,
    OUTPUT_TOKENS,
    REASONING_TOKENS,
    REQUESTS,
    Line,
    show_unit_price,
)
from billing.domain.invoicing.periods import Month
from billing.domain.invoicing.rounding import show_minor
from billing.domain.invoicing.tax import show_tax_rate
from billing.domain.invoicing.totals import TaxLine
from billing.domain.invoicing.usage_group import LineKind

UNITS_SHOWN = {
    INPUT_TOKENS: "Input tokens",
    CACHED_INPUT_TOKENS: "Cached input tokens",
    OUTPUT_TOKENS: "Output tokens",
    REASONING_TOKENS: "Reasoning tokens",
    REQUESTS: "Requests",
}
_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September"),
    *("October", "November", "December"),
)


def amount(minor: int, currency: str) -> str:
    """Minor units as `1,234.50`, with exactly the currency's decimals."""
    return with_commas(show_minor(minor, currency))


def with_commas(digits: str) -> str:
    """Plain decimal digits with a comma between thousands."""
    sign = "-" if digits.startswith("-") else ""
    whole, point, decimals = digits.removeprefix("-").partition(".")
    return f"{sign}{int(whole):,}{point}{decimals}"


def unit_price(line: Line, currency: str) -> str:
    """What one unit costs, and of how many that is said."""
    told = "each" if line.unit == REQUESTS else "per 1M"
    return f"{with_commas(show_unit_price(line, currency))} {told}"


def group_of(line: Line) -> str:
    """What lines that belong together are about."""
    parts = [line.model, line.request_class]
    if line.provider != "self":
        parts.append(line.provider)
    said = ", ".join(parts)
    if line.kind is LineKind.ADJUSTMENT:
        return f"Adjustment for {month_name(line.month)}: {said}"
    return said


def tax_label(tax: TaxLine, currency: str) -> str:
    """A tax with its rate, and on how much it is."""
    rate = show_tax_rate(tax.rate_milli_percent)
    return f"{tax.name or 'Tax'} {rate} % on {amount(tax.base_minor, currency)}"


def day(on: date | None) -> str:
    """`1 December 2026`; a dash where there is none yet."""
    return "–" if on is None else f"{on.day} {_MONTHS[on.month - 1]} {on.year}"


def month_name(name: str) -> str:
    """`2026-11` as `November 2026`."""
    return f"{_MONTHS[int(name[5:]) - 1]} {name[:4]}"


def period(month: Month) -> str:
    """A period's both instants in its own time zone."""
    zone = ZoneInfo(month.time_zone)
    start, end = (_local(at, zone) for at in (month.start, month.end))
    return f"from {start} to before {end}, {month.time_zone}"


def instant(at: datetime) -> str:
    """An instant in UTC, to the second."""
    return at.strftime("%Y-%m-%d %H:%M:%S UTC")


def _local(at: datetime, zone: ZoneInfo) -> str:
    return at.astimezone(zone).isoformat(sep=" ", timespec="minutes")
