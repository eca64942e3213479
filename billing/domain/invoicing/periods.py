"""Calendar months of a time zone as half-open ranges of instants: what an invoice covers.

A month begins with the first instant of its first day's own midnight and ends where the next one
begins, so that months of one zone neither overlap nor leave a gap, whatever the clocks do.
"""

import re
from datetime import UTC, datetime
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

_NAME = re.compile(r"([0-9]{4})-(0[1-9]|1[0-2])")
FIRST_YEAR, LAST_YEAR = 1970, 9998
"""Years that a month can be of: those whose ends every zone can say."""


class InvalidPeriod(ValueError):
    """A text that names no month, or a time zone that nobody knows."""


class Month(msgspec.Struct, frozen=True):
    """A calendar month of a time zone, `[start, end)` in UTC instants."""

    name: str
    """As `2026-11`."""
    time_zone: str
    start: datetime
    end: datetime

    def __contains__(self, at: datetime) -> bool:
        """Whether it has that instant: its first one, not the first of the next month."""
        return self.start <= at < self.end


@lru_cache(maxsize=4096)
def month(name: str, time_zone: str) -> Month:
    """The month of that name, as `2026-11`. Raises InvalidPeriod."""
    found = _NAME.fullmatch(name)
    if found is None or not FIRST_YEAR <= int(found[1]) <= LAST_YEAR:
        raise InvalidPeriod(f"{name!r} is no month: it is written as '2026-11'")
    zone = _zone(time_zone)
    year, number = int(found[1]), int(found[2])
    start, end = _begins(year, number, zone), _begins(year + number // 12, number % 12 + 1, zone)
    return Month(name, time_zone, start, end)


def month_of_instant(at: datetime, time_zone: str) -> Month:
    """The month that has an instant, which is aware. Raises InvalidPeriod.

    By its bounds and not by what the clock shows: where clocks fall back over midnight, the last
    evening of a month is shown a second time after the next one has begun.
    """
    local = at.astimezone(_zone(time_zone))
    found = month(f"{local.year:04d}-{local.month:02d}", time_zone)
    return next_month(found) if at >= found.end else found


def next_month(of: Month) -> Month:
    """The month that begins where this one ends. Raises InvalidPeriod after the last year."""
    return _moved(of, 1)


def previous(of: Month) -> Month:
    """The month that ends where this one begins. Raises InvalidPeriod before the first year."""
    return _moved(of, -1)


def _moved(of: Month, months: int) -> Month:
    year, number = divmod(int(of.name[:4]) * 12 + int(of.name[5:]) - 1 + months, 12)
    return month(f"{year:04d}-{number + 1:02d}", of.time_zone)


@lru_cache(maxsize=1024)
def _zone(time_zone: str) -> ZoneInfo:
    try:
        return ZoneInfo(time_zone)
    except (ZoneInfoNotFoundError, ValueError, OSError) as unknown:
        raise InvalidPeriod(f"{time_zone!r} is no time zone that is known here") from unknown


def _begins(year: int, number: int, zone: ZoneInfo) -> datetime:
    """The first instant of a month: its midnight, the first of two where clocks fall back over it,
    and where they leap over it the instant at which they do."""
    return datetime(year, number, 1, tzinfo=zone).astimezone(UTC)
