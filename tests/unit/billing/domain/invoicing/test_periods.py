from datetime import UTC, datetime, timedelta
from zoneinfo import available_timezones

import pytest
from hypothesis import given
from hypothesis import strategies as st

from billing.domain.invoicing.periods import (
    InvalidPeriod,
    Month,
    month,
    month_of_instant,
    next_month,
    previous,
)

ZONES = sorted(available_timezones())
INSTANT = timedelta(microseconds=1)


def at(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc,arg-type]


def hours(of: Month) -> float:
    return (of.end - of.start).total_seconds() / 3600


def test_v07_b15_a_month_begins_at_the_zones_own_midnight() -> None:
    """In Budapest January 2025 begins at 23:00 UTC of the day before."""
    budapest = month("2025-01", "Europe/Budapest")
    assert budapest.start == at(2024, 12, 31, 23)
    assert budapest.end == at(2025, 1, 31, 23)
    assert month("2026-12", "Asia/Kathmandu").start == at(2026, 11, 30, 18, 15)


def test_v09_an_instant_is_of_the_zones_own_day() -> None:
    """23:30 UTC on 31 December is already January in UTC+8."""
    evening = at(2024, 12, 31, 23, 30)
    assert month_of_instant(evening, "Asia/Singapore").name == "2025-01"
    assert month_of_instant(evening, "UTC").name == "2024-12"


def test_v10_v06_a_month_is_half_open() -> None:
    """The first instant of the next month is not in it; the last afternoon is, to its last µs."""
    november = month("2026-11", "America/Los_Angeles")
    assert november.end == at(2026, 12, 1, 8)
    assert november.end not in november
    assert november.end in next_month(november)
    assert at(2026, 12, 1, 0, 30) in november
    assert november.end - INSTANT in november
    assert november.start in november
    assert november.start - INSTANT not in november


def test_v13_v05_b15_a_month_in_which_the_clocks_change_is_an_hour_shorter_or_longer() -> None:
    """Ends are the calendar's, never so many times 24 hours after the start."""
    berlin = [hours(month(name, "Europe/Berlin")) for name in ("2026-03", "2026-10", "2026-11")]
    assert berlin == [743, 745, 720]
    angeles = [hours(month(name, "America/Los_Angeles")) for name in ("2017-03", "2026-11")]
    assert angeles == [743, 721]
    assert month_of_instant(at(2017, 4, 1, 6, 30), "America/Los_Angeles").name == "2017-03"
    assert hours(month("2026-10", "Australia/Lord_Howe")) == 743.5


@pytest.mark.parametrize("zone", ["America/Juneau", "America/St_Johns", "America/Asuncion"])
def test_v04_the_next_month_always_begins_later(zone: str) -> None:
    """Sixty years of months, one after the other, forwards and back: as many as there are names,
    without a gap and none twice. Juneau is the report's; the others change clocks at midnight."""
    met = [month("1990-01", zone)]
    for _ in range(60 * 12 - 1):
        met.append(next_month(met[-1]))
        assert met[-1].start == met[-2].end > met[-2].start
        assert previous(met[-1]) == met[-2]
    assert met[-1].name == "2049-12"


def test_v02_bounds_are_instants_in_utc_and_found_again_from_any_of_them() -> None:
    """A month is what its two stored instants say: nothing ends at the end of a UTC day."""
    angeles = month("2026-11", "America/Los_Angeles")
    assert (angeles.start, angeles.end) == (at(2026, 11, 1, 7), at(2026, 12, 1, 8))
    assert angeles.start.tzinfo is angeles.end.tzinfo is UTC
    for inside in (angeles.start, at(2026, 12, 1), angeles.end - INSTANT):
        assert month_of_instant(inside, "America/Los_Angeles") == angeles


def test_v03_one_instant_may_be_of_two_months_by_zone() -> None:
    """06:00 UTC on the first is the new month in UTC and still the old one in Los Angeles."""
    morning = at(2026, 12, 1, 6)
    assert month_of_instant(morning, "UTC").name == "2026-12"
    assert month_of_instant(morning, "America/Los_Angeles").name == "2026-11"


def test_clocks_that_fall_back_over_midnight_do_not_begin_a_month_twice() -> None:
    """In St. John's on 1 November 2009 00:01 was followed by 23:01 of October."""
    november = month("2009-11", "America/St_Johns")
    assert november.start == at(2009, 11, 1, 2, 30)
    assert month_of_instant(at(2009, 11, 1, 2, 45), "America/St_Johns") == november


def test_clocks_that_leap_over_midnight_begin_a_month_when_they_do() -> None:
    """In Asunción 1 October 2023 began at 01:00, an instant after 23:59:59."""
    october = month("2023-10", "America/Asuncion")
    assert october.start == at(2023, 10, 1, 4)
    assert month_of_instant(october.start - INSTANT, "America/Asuncion").name == "2023-09"


@given(st.sampled_from(ZONES), st.datetimes(datetime(1971, 1, 1), datetime(2100, 1, 1)))  # noqa: DTZ001
def test_an_instant_lies_in_the_month_that_is_said_of_it(zone: str, naive: datetime) -> None:
    """In any zone; and its neighbours begin and end where it does."""
    instant = naive.replace(tzinfo=UTC)
    found = month_of_instant(instant, zone)
    assert instant in found
    assert month(found.name, zone) == found
    assert next_month(found).start == found.end
    assert previous(found).end == found.start


@given(st.sampled_from(ZONES), st.integers(2000, 2100), st.integers(1, 12))
def test_every_month_begins_on_a_quarter_of_an_hour(zone: str, year: int, number: int) -> None:
    """Which is why roll-ups of quarters can be summed up for any tenant's month."""
    start = month(f"{year}-{number:02d}", zone).start
    assert (start.minute % 15, start.second, start.microsecond) == (0, 0, 0)


@pytest.mark.parametrize(
    "name", ["2026-13", "2026-00", "2026-1", "2026", "", "2026-11-01", "9999-12", "٢٠٢٦-١١"]
)
def test_what_is_no_month(name: str) -> None:
    with pytest.raises(InvalidPeriod, match="is no month"):
        month(name, "UTC")


@pytest.mark.parametrize("zone", ["Europe/Bonn", "", "../etc/passwd", "/etc/passwd"])
def test_what_is_no_zone(zone: str) -> None:
    with pytest.raises(InvalidPeriod, match="is no time zone"):
        month("2026-11", zone)
