"""Months of a tenant's billing time zone: `2026-11`, half-open in instants."""

from datetime import UTC, datetime, timedelta
from functools import lru_cache
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
