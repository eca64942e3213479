"""Numbers of documents: gapless within a series, which is a prefix and a year."""

from datetime import date, datetime
from zoneinfo import ZoneInfo

import msgspec

DIGITS = 6


class Series(msgspec.Struct, frozen=True):
    """What numbers are counted in."""

    prefix: str
    """As `INV`."""
    year: int


class PrefixTaken(ValueError):
    """A prefix of the seller's that numbers documents of the other kind; `field` is which."""

    def __init__(self, field: str, prefix: str, numbered: str) -> None:
        super().__init__(f"{prefix} numbers {numbered}: name another prefix")
        self.field = field


def date_of_issue(issued_at: datetime, seller_time_zone: str) -> date:
    """The seller's day on which something is issued."""
    return issued_at.astimezone(ZoneInfo(seller_time_zone)).date()


def series_of(prefix: str, issued_on: date) -> Series:
    """The series of what is issued on that day of the seller's."""
    return Series(prefix, issued_on.year)


def number_of(series: Series, count: int) -> str:
    """The number of the count-th document of a series, from 1: `INV-2026-000001`."""
    if count < 1:
        raise ValueError("a series counts from 1")
    return f"{series.prefix}-{series.year:04d}-{count:0{DIGITS}}"
