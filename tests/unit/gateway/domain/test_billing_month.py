from datetime import UTC, datetime

import pytest

from billing.domain.invoicing.periods import InvalidPeriod, month
from gateway.domain.billing_month import month_key, month_of
from gateway.domain.instants import ms_of


def ms(*parts: int) -> int:
    found = ms_of(datetime(*parts, tzinfo=UTC))  # type: ignore[misc,arg-type]
    assert found is not None
    return found


def test_a_key_names_bounds_and_currency() -> None:
    """So that of another zone or currency it is another month; it begins with the month's name."""
    noon = ms(2026, 11, 15, 12)
    key = month_key(noon, "Asia/Tokyo", "JPY")
    tokyo = month("2026-11", "Asia/Tokyo")
    assert month_of(key) == ("2026-11", tokyo.start, tokyo.end, "JPY")
    assert key.startswith("2026-11:")
    assert not set("|@/") & set(key)
    others = [month_key(noon, "UTC", "JPY"), month_key(noon, "Asia/Tokyo", "USD")]
    assert len({key, *others}) == 3
    assert month_key(noon, "Asia/Seoul", "JPY") == key
    with pytest.raises(ValueError, match="unpack"):
        month_of("2026-11")


def test_a_key_is_of_the_month_in_the_tenants_own_zone() -> None:
    """The last evening of November in Berlin is December in Tokyo. Keys are kept in the store: how
    they are written does not change."""
    evening = ms(2026, 11, 30, 22, 30)
    assert month_key(evening, "Europe/Berlin", "EUR") == "2026-11:1793487600:1796079600:EUR"
    assert month_key(evening, "Asia/Tokyo", "EUR") == "2026-12:1796050800:1798729200:EUR"
    with pytest.raises(InvalidPeriod):
        month_key(evening, "Mars/Olympus", "EUR")
