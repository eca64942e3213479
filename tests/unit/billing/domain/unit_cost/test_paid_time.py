"""The hours that were paid for, by span and by hour of the day."""

from fractions import Fraction

import pytest
from unit_cost_examples import DAY

from billing.domain.unit_cost.hours_file import InvalidHours, read_hours_file
from billing.domain.unit_cost.paid_time import (
    DAY_MS,
    HOUR_MS,
    SeenAlive,
    day_of,
    paid_by_day,
    paid_evenly,
    paid_while_seen,
)

TWO_DAYS = "date,gpu_hours\n2026-11-30,96\n2026-12-01,48.5\n"


def test_evenly_is_as_much_in_each_hour_as_it_has_of_the_time() -> None:
    """From half past one on day 1 to two on day 3: hour 1 has two and a half, hour 2 two."""
    start, end = DAY + HOUR_MS * 3 // 2, DAY + 2 * DAY_MS + 2 * HOUR_MS
    paid = paid_evenly(start, end, end - start)
    assert paid.by_hour[0] == 2 * HOUR_MS
    assert paid.by_hour[1] == HOUR_MS * 5 // 2
    assert set(paid.by_hour[2:]) == {2 * HOUR_MS}
    assert sum(paid.by_hour) == paid.gpu_ms == end - start
    assert (len(paid.spans), paid.by_day) == (1, False)


def test_by_day_a_day_has_its_own() -> None:
    """None is none, and a part of a day a span too."""
    paid = paid_by_day(DAY, DAY + 2 * DAY_MS + HOUR_MS, {day_of(DAY): 24 * HOUR_MS})
    assert [span.gpu_ms for span in paid.spans] == [24 * HOUR_MS, 0, 0]
    assert paid.spans[2].end_ms - paid.spans[2].start_ms == HOUR_MS
    assert set(paid.by_hour) == {HOUR_MS}


def test_while_seen_is_cut_to_the_time_and_told_by_hour() -> None:
    """Two workers, one over midnight: four GPUs each."""
    seen = [
        SeenAlive("a", DAY - HOUR_MS, DAY + HOUR_MS),
        SeenAlive("b", DAY + 23 * HOUR_MS, DAY + 25 * HOUR_MS),
        SeenAlive("b", DAY + 5 * DAY_MS, DAY + 6 * DAY_MS),
    ]
    paid = paid_while_seen(DAY, DAY + 2 * DAY_MS, seen, gpus=Fraction(4))
    assert [span.gpu_ms for span in paid.spans] == [8 * HOUR_MS, 4 * HOUR_MS]
    assert paid.by_hour[0] == 8 * HOUR_MS
    assert paid.by_hour[23] == 4 * HOUR_MS
    assert sum(paid.by_hour) == 12 * HOUR_MS
    assert paid.by_day


def test_a_file_of_hours() -> None:
    """One line a day, in any order, blank lines and a mark of UTF-8 passed over."""
    end = DAY + 2 * DAY_MS
    expected = {day_of(DAY): 96 * HOUR_MS, day_of(DAY) + 1: 48 * HOUR_MS + HOUR_MS // 2}
    assert read_hours_file(TWO_DAYS, DAY, end) == expected
    mixed = "\ufeffdate,gpu_hours\r\n2026-12-01, 48.5\r\n\r\n2026-11-30,96.000\r\n"
    assert read_hours_file(mixed, DAY, end) == expected


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "line 1: must be date,gpu_hours"),
        ("day,hours\n", "line 1: must be date,gpu_hours"),
        (TWO_DAYS + "2026-12-02,1\n", "line 4: 2026-12-02 is not in the time"),
        (TWO_DAYS + "2026-11-30,1\n", "line 4: 2026-11-30 is there twice"),
        (TWO_DAYS.replace("2026-12-01,48.5\n", ""), "2026-12-01 is missing"),
        (TWO_DAYS.replace("96", "-96"), "line 2: gpu_hours must be"),
        (TWO_DAYS.replace("96", "9,6"), "line 2: must have 2 cells"),
        (TWO_DAYS.replace("48.5", "48.5001"), "line 3: gpu_hours must be"),
        (TWO_DAYS.replace("2026-11-30", "20261130"), "line 2: '20261130' is no date"),
        (TWO_DAYS.replace("2026-11-30", "2026-11-31"), "line 2: '2026-11-31' is no date"),
    ],
)
def test_a_file_that_is_wrong(text: str, what: str) -> None:
    """Refused whole, with the line."""
    with pytest.raises(InvalidHours, match=what):
        read_hours_file(text, DAY, DAY + 2 * DAY_MS)


def test_every_error_is_told_at_once() -> None:
    """And hours by day want whole days."""
    wrong = TWO_DAYS.replace("96", "x").replace("48.5", "y")
    with pytest.raises(InvalidHours) as found:
        read_hours_file(wrong, DAY, DAY + 2 * DAY_MS)
    assert [error[:6] for error in found.value.errors] == ["line 2", "line 3"]
    with pytest.raises(InvalidHours, match="midnight"):
        read_hours_file(TWO_DAYS, DAY + 1, DAY + 2 * DAY_MS)
