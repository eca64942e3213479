"""How figures look: exact, with their unit, and not known where they are not known."""

from datetime import UTC, datetime

import pytest
from jinja2 import Environment, StrictUndefined

from gateway.console.figures import (
    FILTERS,
    UNKNOWN,
    compact,
    meter_permille,
    money,
    ms,
    percent,
    sum_known,
    tokens,
    whole,
)

NOW_MS = 1_796_072_400_000
"""2026-11-30 21:00:00 UTC."""


def plain(text: str) -> str:
    """What is read of it, without its marks."""
    return text.replace('<span class="unit">', "").replace("</span>", "")


def drawn(template: str, **context: object) -> str:
    """A template with the filters, at NOW_MS."""
    environment = Environment(autoescape=True, undefined=StrictUndefined)
    environment.filters.update(FILTERS)
    return environment.from_string(template).render(now_ms=NOW_MS, **context)


@pytest.mark.parametrize(
    ("number", "shown"),
    [(0, "0"), (999, "999"), (12_345, "12,345"), (10**12, "1,000,000,000,000"), (-1500, "-1,500")],
)
def test_whole_numbers_are_grouped(number: int, shown: str) -> None:
    """By thousands."""
    assert whole(number) == shown


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        (1_000, "1k"),
        (12_345, "12.3k"),
        (12_399, "12.3k"),
        (999_999, "999k"),
        (1_000_000, "1M"),
        (2_550_000_000, "2.5G"),
        (7 * 10**12, "7T"),
        (-12_345, "-12.3k"),
    ],
)
def test_a_short_number_is_cut_and_has_the_exact_one_as_its_title(number: int, shown: str) -> None:
    """Never rounded up: what is below a limit does not look as if it had reached it."""
    assert compact(number) == f'<span title="{number:,}">{shown}</span>'


def test_small_numbers_are_short_as_they_are() -> None:
    """Up to 999."""
    assert compact(999) == "999"


def test_one_token_is_no_tokens() -> None:
    """Singular and plural."""
    assert plain(tokens(1)) == "1 token"
    assert plain(tokens(12_345)) == "12,345 tokens"


@pytest.mark.parametrize(
    ("duration_ms", "shown"),
    [
        (0, "0 ms"),
        (0.24, "0.2 ms"),
        (9.0, "9 ms"),
        (830, "830 ms"),
        (999.9, "999 ms"),
        (1_000, "1 s"),
        (12_345, "12.3 s"),
        (59_999, "59.9 s"),
        (60_000, "1 min"),
        (200_000, "3 min 20 s"),
        (7_500_000, "2 h 5 min"),
        (7_201_000, "2 h"),
        (90_000_000, "1 d 1 h"),
    ],
)
def test_durations_have_the_unit_that_they_are_read_in(duration_ms: float, shown: str) -> None:
    """Two units at most."""
    assert plain(ms(duration_ms)) == shown


@pytest.mark.parametrize(
    ("part", "of", "shown"),
    [
        (37, 100, "37 %"),
        (4, 1000, "0.4 %"),
        (1, 3, "33 %"),
        (0, 5, "0 %"),
        (656, 1000, "66 %"),
        (344, 1000, "34 %"),
        (125, 1000, "13 %"),
        (996, 10_000, "10 %"),
        (86, 10_000, "0.9 %"),
        (999, 1000, "99 %"),
        (1000, 1000, "100 %"),
        (1006, 1000, "101 %"),
    ],
)
def test_shares_are_rounded(part: int, of: int, shown: str) -> None:
    """Two that are the whole together look like it; 999 of 1000 are not yet 100 %."""
    assert plain(percent(part, of)) == shown


@pytest.mark.parametrize(
    ("amount", "shown"),
    [
        ("0.00", "0.00 EUR"),
        ("1234.50", "1,234.50 EUR"),
        ("-1234567.123456789012", "-1,234,567.123456789012 EUR"),
        ("999", "999 EUR"),
    ],
)
def test_money_keeps_every_digit(amount: str, shown: str) -> None:
    """And no other is added."""
    assert plain(money(amount, "EUR")) == shown


def test_what_is_not_known_is_never_a_number() -> None:
    """None of a store that does not answer is no 0, and is said to whoever hears the page."""
    for shown in (
        whole(None),
        compact(None),
        tokens(None),
        ms(None),
        money(None, "EUR"),
        percent(None, 5),
        percent(5, None),
        percent(5, 0),
        drawn("{{ none | instant }}"),
        drawn("{{ none | ago }}"),
        drawn("{{ none | day }}"),
        drawn("{{ none | instant_short }}"),
    ):
        assert shown == UNKNOWN
    assert "not known" in UNKNOWN
    assert sum_known([{"a": 1}, {"a": None}], "a") is None
    assert sum_known([{"a": 1}, {"a": 2}], "a") == 3


@pytest.mark.parametrize(
    ("distance_ms", "shown"),
    [
        (0, "now"),
        (-3_000, "3 s ago"),
        (-200_000, "3 min ago"),
        (-7_500_000, "2 h ago"),
        (-3 * 86_400_000, "3 d ago"),
        (7_200_000, "in 2 h"),
    ],
)
def test_instants_say_how_long_ago(distance_ms: int, shown: str) -> None:
    """Or how long until."""
    assert f">{shown}<" in drawn("{{ at | ago }}", at=NOW_MS + distance_ms)


def test_an_instant_is_the_same_in_whatever_form_it_comes() -> None:
    """Milliseconds, RFC 3339 in any zone, an aware time: shown in UTC."""
    forms = [
        NOW_MS,
        "2026-11-30T21:00:00.000Z",
        "2026-12-01T02:45:00+05:45",
        datetime(2026, 11, 30, 21, tzinfo=UTC),
    ]
    shown = {drawn("{{ at | instant }}", at=form) for form in forms}
    assert len(shown) == 1
    assert '<time datetime="2026-11-30T21:00:00Z">2026-11-30 21:00:00' in shown.pop()
    assert ">2026-11-30<" in drawn("{{ at | day }}", at=NOW_MS)
    assert ">2026-11-30 21:00<" in drawn("{{ at | instant_short }}", at=NOW_MS)


def test_a_meter_is_never_more_than_full() -> None:
    """12 of 8 is full, and nothing is not known to be empty."""
    assert meter_permille(12, 8) == 1_000
    assert meter_permille(4, 8) == 500
    assert meter_permille(None, 8) is None
    assert meter_permille(4, None) is None


def test_what_comes_from_outside_is_escaped() -> None:
    """A currency that is a tag stays a text."""
    assert "<b>" not in drawn("{{ '1' | money(evil) }}", evil="<b>")
