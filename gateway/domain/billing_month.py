"""Months of a tenant's billing time zone: `2026-11`, half-open in instants.

What a month has cost is kept by its *key*, which names its bounds and its currency too: of another
time zone or currency it is another month, whose sum nobody knows yet.
"""

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_zone = lru_cache(maxsize=1024)(ZoneInfo)


def month_at(at_ms: int, time_zone: str) -> str:
    """The month in which an instant (Unix ms) lies, by the calendar of the zone."""
    local = (_EPOCH + at_ms * _MILLISECOND).astimezone(_zone(time_zone))
    return f"{local.year:04d}-{local.month:02d}"


@lru_cache(maxsize=4096)
def month_bounds(month: str, time_zone: str) -> tuple[datetime, datetime]:
    """The first instant of a month and that of the next, UTC. Raises ValueError."""
    start = datetime.strptime(month, "%Y-%m").replace(tzinfo=_zone(time_zone))
    year, number = divmod(start.year * 12 + start.month, 12)
    return start.astimezone(UTC), start.replace(year=year, month=number + 1).astimezone(UTC)


class BillingMonth(NamedTuple):
    """What a key says: instants are UTC."""

    name: str
    """As `2026-11`, which begins every key."""
    start: datetime
    end: datetime
    currency: str


def month_key(at_ms: int, time_zone: str, currency: str) -> str:
    """The key of the month in which an instant (Unix ms) lies."""
    return _key(month_at(at_ms, time_zone), time_zone, currency)


def month_of(key: str) -> BillingMonth:
    """The month of a key. Raises ValueError."""
    name, start, end, currency = key.split(":")
    return BillingMonth(name, _instant(start), _instant(end), currency)


@lru_cache(maxsize=4096)
def _key(name: str, time_zone: str, currency: str) -> str:
    start, end = (int(bound.timestamp()) for bound in month_bounds(name, time_zone))
    return f"{name}:{start}:{end}:{currency}"


def _instant(seconds: str) -> datetime:
    return _EPOCH + timedelta(seconds=int(seconds))
