"""Rows written against requests finished, without a database."""

from collections.abc import Sequence

import pytest

from backend.loadtest.extra_rows import Row, unaccounted
from backend.loadtest.plan import PlannedRequest, Segment
from backend.loadtest.rows import RowsCheck, compare
from backend.loadtest.run import Outcome

ID = "0192f0c1-2345-7abc-8def-0123456789ab"


def outcome(**fields: object) -> Outcome:
    planned = PlannedRequest(7, 0.0, "t00", "batch", (Segment("p", 30),), 5)
    found = Outcome(planned, prompt_tokens=37, cached_tokens=36, output_tokens=5, end="ok")
    for name, value in fields.items():
        setattr(found, name, value)
    return found


def row(**fields: object) -> Row:
    agreeing: dict[str, object] = {
        "outcome": "completed",
        "final": True,
        "tenant_id": "loadtest-t00",
        "class": "batch",
        "prompt_tokens": 37,
        "cached_prompt_tokens": 36,
        "output_tokens": 5,
    }
    return {**agreeing, **fields}


def compared(rows: Sequence[Row], **told: object) -> list[str]:
    return compare({ID: outcome(**told)}, {ID: rows} if rows else {})


def test_one_row_that_says_what_was_told_is_right() -> None:
    """Nothing is wrong with it."""
    assert compared([row()]) == []


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("outcome", "worker_failed"),
        ("final", False),
        ("tenant_id", "loadtest-t01"),
        ("class", "interactive"),
        ("prompt_tokens", 38),
        ("cached_prompt_tokens", 0),
        ("output_tokens", 6),
    ],
)
def test_each_field_is_compared(field: str, value: object) -> None:
    """A row that differs in it is named, with both values."""
    (wrong,) = compared([row(**{field: value})])
    assert wrong == f"{ID}: {field} is {value!r} for {row()[field]!r}"


def test_no_row_and_two_rows_are_wrong() -> None:
    """Each finished request has one."""
    assert compared([]) == [f"{ID}: no row"]
    assert compared([row(), row()]) == [f"{ID}: 2 rows"]


def test_cached_tokens_count_only_where_the_client_was_told() -> None:
    """An answer without them is no claim."""
    assert compared([row(cached_prompt_tokens=12)], cached_tokens=None) == []


def test_rows_that_nobody_asked_for_are_counted() -> None:
    """By tenant and class; a request that failed before the client had its id may have been
    admitted, and excuses one."""
    extra = [{"request_id": f"{ID[:-1]}{n}", "tenant_id": "loadtest-t00"} for n in range(3)]
    batch = [{**each, "class": "batch"} for each in extra]
    other = [{**each, "class": "interactive"} for each in extra[:1]]
    lost, answered = outcome(end="timeout"), outcome(request_id=ID)
    assert unaccounted(batch, [lost, lost, lost, answered]) == []
    first, second = unaccounted([*batch, *other], [lost, answered])
    assert first.startswith("loadtest-t00, batch: 2 rows that no request of this run accounts for")
    assert "another load test ran on this Weir at the same time" in first
    assert second.startswith("loadtest-t00, interactive: 1 row that")


def test_the_lines_name_the_first_mismatches_and_count_the_rest() -> None:
    """A thousand of them do not fill the screen."""
    assert RowsCheck(finished=3, found=3, written=4).lines() == [
        "rows: 3 of 3 finished requests have one; every row agrees"
    ]
    lines = RowsCheck(9, 2, 2, [f"r{number}: no row" for number in range(7)]).lines()
    assert lines[0] == "rows: 2 of 9 finished requests have one; 7 MISMATCHES"
    assert lines[1:] == [*(f"  r{number}: no row" for number in range(5)), "  and 2 more"]
