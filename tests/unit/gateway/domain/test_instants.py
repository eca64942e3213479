"""Unix milliseconds and aware times are the same instants."""

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.instants import instant_of, ms_of, shown

LAST_MS = 253_402_300_799_999


@given(st.integers(min_value=0, max_value=LAST_MS))
def test_milliseconds_survive_the_round_trip(at_ms: int) -> None:
    """Up to the end of the year 9999, to the millisecond."""
    instant = instant_of(at_ms)
    assert instant is not None
    assert instant.tzinfo is UTC
    assert ms_of(instant) == at_ms


def test_an_offset_is_the_same_instant() -> None:
    """And parts of a millisecond are cut off."""
    east = timezone(timedelta(hours=1))
    assert ms_of(datetime(1970, 1, 1, 1, 0, 1, 2999, tzinfo=east)) == 1002


def test_none_stays_none() -> None:
    """No instant is no instant in every form."""
    assert (ms_of(None), instant_of(None), shown(None)) == (None, None, None)


def test_shown_is_rfc_3339_in_utc() -> None:
    """Always with milliseconds and Z."""
    assert shown(0) == "1970-01-01T00:00:00.000Z"
    assert shown(1_795_970_126_549) == "2026-11-29T16:35:26.549Z"
