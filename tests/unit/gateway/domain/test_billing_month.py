from datetime import UTC, datetime
from zoneinfo import available_timezones

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.billing_month import month_at, month_bounds, month_key, month_of
from gateway.domain.instants import ms_of

ZONES = sorted(available_timezones())


def ms(*parts: int) -> int:
    found = ms_of(datetime(*parts, tzinfo=UTC))  # type: ignore[misc,arg-type]
    assert found is not None
    return found


def test_a_month_begins_at_the_zones_own_midnight() -> None:
    """The last evening of November in Berlin is November there, and December in Tokyo."""
    evening = ms(2026, 11, 30, 22, 30)
    assert month_at(evening, "Europe/Berlin") == "2026-11"
    assert month_at(evening, "Asia/Tokyo") == "2026-12"
    assert month_at(evening, "UTC") == "2026-11"
    assert month_bounds("2026-12", "Asia/Tokyo") == (
        datetime(2026, 11, 30, 15, tzinfo=UTC),
        datetime(2026, 12, 31, 15, tzinfo=UTC),
    )


def test_a_month_in_which_the_clocks_change_has_an_hour_less_or_more() -> None:
    """October in Berlin has 745 hours, March 743."""
    lengths = [month_bounds(month, "Europe/Berlin") for month in ("2026-10", "2026-03")]
    assert [(end - start).total_seconds() / 3600 for start, end in lengths] == [745, 743]


@pytest.mark.parametrize("month", ["2026-13", "2026", "", "2026-11-01"])
def test_what_is_no_month(month: str) -> None:
    """It has no bounds."""
    with pytest.raises(ValueError, match=r"time data|unconverted"):
        month_bounds(month, "UTC")


@given(st.sampled_from(ZONES), st.integers(2020, 2040), st.integers(1, 12), st.integers(0, 2**31))
def test_an_instant_lies_within_its_month_alone(
    zone: str, year: int, number: int, offset_ms: int
) -> None:
    """Both ways of saying a month agree, at its first instant, its last one and between, in any
    zone; and the next begins where it ends."""
    month = f"{year}-{number:02d}"
    start, end = month_bounds(month, zone)
    start_ms, end_ms = ms_of(start), ms_of(end)
    assert start_ms is not None
    assert end_ms is not None
    inside = min(start_ms + offset_ms, end_ms - 1)
    assert {month_at(at_ms, zone) for at_ms in (start_ms, inside, end_ms - 1)} == {month}
    following = month_at(end_ms, zone)
    assert following > month
    assert month_bounds(following, zone)[0] == end
    assert month_at(start_ms - 1, zone) < month


def test_a_key_names_bounds_and_currency() -> None:
    """So that of another zone or currency it is another month; it begins with the month's name."""
    noon = ms(2026, 11, 15, 12)
    key = month_key(noon, "Asia/Tokyo", "JPY")
    start, end = month_bounds("2026-11", "Asia/Tokyo")
    assert month_of(key) == ("2026-11", start, end, "JPY")
    assert key.startswith("2026-11:")
    assert not set("|@/") & set(key)
    others = [month_key(noon, "UTC", "JPY"), month_key(noon, "Asia/Tokyo", "USD")]
    assert len({key, *others}) == 3
    assert month_key(noon, "Asia/Seoul", "JPY") == key
    with pytest.raises(ValueError, match="unpack"):
        month_of("2026-11")
