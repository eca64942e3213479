from datetime import datetime
from types import SimpleNamespace
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import asdict
from price_examples import a_price

from billing.postgres.prices import instant_of, price_from

YEAR_10000_MS = 253_402_300_800_000


@given(st.integers(0, YEAR_10000_MS - 1))
@example(YEAR_10000_MS - 1)
@example(1_795_970_008_193)
def test_the_instant_of_a_price_is_exact(at_ms: int) -> None:
    """To the millisecond, whatever the century: a float would lose it."""
    price = a_price(effective_from_ms=at_ms)
    row: Any = SimpleNamespace(**asdict(price), effective_from=instant_of(at_ms))
    assert price_from(row) == price


def test_another_zones_clock_says_the_same_instant() -> None:
    """Postgres shows times in the session's zone."""
    row: Any = SimpleNamespace(
        **asdict(a_price()), effective_from=datetime.fromisoformat("1970-01-01T05:30:00.250+05:30")
    )
    assert price_from(row).effective_from_ms == 250
