"""How figures look on every page: filters of the templates. What is not known is never shown as 0.

All are exact: amounts of money are texts and stay texts, and nothing goes through a float but
milliseconds that came as one.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from jinja2 import pass_context
from jinja2.runtime import Context
from markupsafe import Markup, escape

UNKNOWN = Markup(
    '<span class="unknown" title="not known"><span aria-hidden="true">–</span>'
    '<span class="sr-only">not known</span></span>'
)
_STEPS = ((10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k"))
_SPANS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def whole(number: int | None) -> str:
    """`12,345`."""
    return UNKNOWN if number is None else f"{number:,}"


def compact(number: int | None) -> str:
    """`12.3k`, cut and not rounded up; the exact number is the title."""
    if number is None:
        return UNKNOWN
    found = next((step for step in _STEPS if abs(number) >= step[0]), None)
    if found is None:
        return str(number)
    step, letter = found
    tenths = abs(number) * 10 // step
    short = f"{tenths // 10}" if tenths >= 1_000 else f"{tenths // 10}.{tenths % 10}"
    sign = "-" if number < 0 else ""
    shown = f"{sign}{short.removesuffix('.0')}{letter}"
    return Markup('<span title="{}">{}</span>').format(f"{number:,}", shown)


def tokens(number: int | None) -> str:
    """`12,345 tokens`, with the unit quiet."""
    if number is None:
        return UNKNOWN
    return Markup('{} <span class="unit">{}</span>').format(
        f"{number:,}", "token" if number == 1 else "tokens"
    )


def ms(duration_ms: float | None) -> str:
    """`830 ms`, `12.3 s`, `3 min 20 s`, `2 h 5 min`."""
    if duration_ms is None:
        return UNKNOWN
    if 0 < duration_ms < 10 and duration_ms != int(duration_ms):
        return _unit(f"{duration_ms:.1f}", "ms")
    if duration_ms < 1_000:
        return _unit(f"{int(duration_ms)}", "ms")
    if duration_ms < 60_000:
        tenths = int(duration_ms) // 100
        return _unit(f"{tenths // 10}.{tenths % 10}".removesuffix(".0"), "s")
    return Markup(" ").join(_parts(int(duration_ms) // 1000))


def percent(part: int | None, of: int | None) -> str:
    """`37 %` of a whole, rounded, but to 100 only what is all of it; `0.4 %` below 10; not known
    where the whole is 0 or not known."""
    if part is None or not of:
        return UNKNOWN
    tenths = _rounded(part * 1_000, of)
    if 0 < tenths < 100:
        return _unit(f"{tenths // 10}.{tenths % 10}", "%")
    whole_percent = _rounded(part * 100, of)
    return _unit(f"{min(whole_percent, 99) if part < of else whole_percent}", "%")


def money(amount: str | None, currency: str | None = None) -> str:
    """`1,234.50 EUR` of the text `1234.50`: every digit that was given, and no other."""
    if amount is None:
        return UNKNOWN
    sign, digits = ("-", amount[1:]) if amount.startswith("-") else ("", amount)
    before, point, after = digits.partition(".")
    grouped = f"{int(before):,}" if before.isdigit() else before
    shown = f"{sign}{grouped}{point}{after}"
    return shown if currency is None else _unit(shown, currency)


@pass_context
def instant(context: Context, at: str | int | datetime | None) -> str:
    """`2026-11-30 21:04:52 UTC`, and how long ago in the title's place beside it."""
    moment = _moment(at)
    if moment is None:
        return UNKNOWN
    return Markup(
        '<time datetime="{}">{} <span class="unit">UTC</span></time> <span class="ago">{}</span>'
    ).format(_rfc3339(moment), f"{moment:%Y-%m-%d %H:%M:%S}", _relative(context, moment))


@pass_context
def ago(context: Context, at: str | int | datetime | None) -> str:
    """`3 min ago`, or `in 2 h`; the instant is the title."""
    moment = _moment(at)
    if moment is None:
        return UNKNOWN
    return Markup('<time datetime="{}" title="{}">{}</time>').format(
        _rfc3339(moment), f"{moment:%Y-%m-%d %H:%M:%S} UTC", _relative(context, moment)
    )


def instant_short(at: str | int | datetime | None) -> str:
    """`2026-11-30 21:04`, in UTC."""
    moment = _moment(at)
    if moment is None:
        return UNKNOWN
    return Markup('<time datetime="{}">{}</time>').format(
        _rfc3339(moment), f"{moment:%Y-%m-%d %H:%M}"
    )


def day(at: str | int | datetime | None) -> str:
    """`2026-11-30`, of the day in UTC."""
    moment = _moment(at)
    if moment is None:
        return UNKNOWN
    return Markup('<time datetime="{}">{}</time>').format(_rfc3339(moment), f"{moment:%Y-%m-%d}")


def meter_permille(part: int | None, of: int | None) -> int | None:
    """How full a meter is, 0 to 1000; None where that is not known."""
    if part is None or not of:
        return None
    return max(0, min(1_000, part * 1_000 // of))


def sum_known(rows: Iterable[Mapping[str, Any]], name: str) -> int | None:
    """The sum of a figure over rows; None where any of them does not know it."""
    figures = [row[name] for row in rows]
    return None if None in figures else sum(figures)


FILTERS = {
    "sum_known": sum_known,
    "whole": whole,
    "compact": compact,
    "tokens": tokens,
    "ms": ms,
    "percent": percent,
    "money": money,
    "instant": instant,
    "instant_short": instant_short,
    "ago": ago,
    "day": day,
}


def _moment(at: str | int | datetime | None) -> datetime | None:
    if at is None or isinstance(at, datetime):
        return None if at is None else at.astimezone(UTC)
    if isinstance(at, int):
        return datetime.fromtimestamp(at // 1000, tz=UTC)
    return datetime.fromisoformat(at).astimezone(UTC)


def _rfc3339(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def _rounded(part: int, of: int) -> int:
    """The nearest whole number; a half is rounded up."""
    return (2 * part + of) // (2 * of)


def _relative(context: Context, moment: datetime) -> str:
    now_s = int(context["now_ms"]) // 1000
    distance_s = now_s - int(moment.timestamp())
    if abs(distance_s) < 2:
        return "now"
    size, unit = next(span for span in _SPANS if abs(distance_s) >= span[0])
    text = f"{abs(distance_s) // size} {unit}"
    return f"{text} ago" if distance_s > 0 else f"in {text}"


def _parts(seconds: int) -> list[str]:
    at = next(index for index, (size, _) in enumerate(_SPANS) if seconds >= size)
    shown = []
    for size, unit in _SPANS[at : at + 2]:
        count, seconds = divmod(seconds, size)
        if count:
            shown.append(_unit(str(count), unit))
    return shown


def _unit(figure: str, unit: str) -> str:
    return Markup('{} <span class="unit">{}</span>').format(escape(figure), escape(unit))
