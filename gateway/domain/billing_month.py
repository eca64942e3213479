"""Months of a tenant's billing time zone by their *key*, which what a month has cost is kept by.

It names the month's bounds and its currency too: of another time zone or currency it is another
month, whose sum nobody knows yet.
"""

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple

from billing.domain.invoicing.periods import month, month_of_instant

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


class BillingMonth(NamedTuple):
    """What a key says: instants are UTC."""

    name: str
    """As `2026-11`, which begins every key."""
    start: datetime
    end: datetime
    currency: str


def month_key(at_ms: int, time_zone: str, currency: str) -> str:
    """The key of the month in which an instant (Unix ms) lies."""
    return _key(
        month_of_instant(_EPOCH + at_ms * _MILLISECOND, time_zone).name, time_zone, currency
    )


def month_of(key: str) -> BillingMonth:
    """The month of a key. Raises ValueError."""
    name, start, end, currency = key.split(":")
    return BillingMonth(name, _instant(start), _instant(end), currency)


@lru_cache(maxsize=4096)
def _key(name: str, time_zone: str, currency: str) -> str:
    bounds = month(name, time_zone)
    return f"{name}:{bounds.start.timestamp():.0f}:{bounds.end.timestamp():.0f}:{currency}"


def _instant(seconds: str) -> datetime:
    return _EPOCH + timedelta(seconds=int(seconds))
