"""What an entry of the audit log says has changed."""

from typing import Any

import pytest

from gateway.console.differences import Difference, Sort, differences, summary


def told(before: dict[str, Any] | None, after: dict[str, Any] | None) -> list[tuple[str, ...]]:
    """Each difference as its sort and its texts."""
    return [
        (each.sort.value, each.field, *filter(None, (each.before, each.after)))
        for each in differences(before, after)
    ]


def test_only_what_differs_is_told() -> None:
    """By its path, however deep; in the order in which it is stored."""
    before = {"name": "Acme", "limits": {"tokens": 1000, "burst": 5, "policy": None}, "on": True}
    after = {"name": "Acme", "limits": {"tokens": 25_000, "burst": 5, "policy": "x"}, "on": False}
    assert told(before, after) == [
        ("changed", "limits.tokens", "1,000", "25,000"),
        ("changed", "limits.policy", "none", "x"),
        ("changed", "on", "yes", "no"),
    ]
    assert differences(before, before) == []
    assert differences(None, None) == []


def test_what_is_made_or_ended_says_all_that_it_is() -> None:
    """Fields that say nothing are left out: a new tenant has thirty limits that are none."""
    limits = {"tokens": 5, "requests": None}
    subject: dict[str, object] = {"id": "acme", "plan": None, "limits": limits, "tags": []}
    assert told(None, subject) == [
        ("added", "id", "acme"),
        ("added", "limits.tokens", "5"),
        ("added", "tags", "empty"),
    ]
    assert [each.sort for each in differences(subject, None)] == [Sort.REMOVED] * 3


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"x": None}, {"x": {"y": 1}}, [("added", "x.y", "1")]),
        ({"x": {"y": 1}}, {"x": None}, [("removed", "x.y", "1")]),
        ({"x": 1}, {"x": {"y": 1}}, [("changed", "x", "1", '{"y":1}')]),
        ({"x": [{"p": 1}, {"p": 2}]}, {"x": [{"p": 1}]}, [("removed", "x.2.p", "2")]),
        ({"x": ["a"]}, {"x": ["a", "b"]}, [("changed", "x", "a", "a, b")]),
        ({"x": ""}, {"x": "a"}, [("changed", "x", "empty", "a")]),
        ({"x": 1}, {"x": True}, [("changed", "x", "1", "yes")]),
        ({"x": {}}, {"x": None}, [("changed", "x", "{}", "none")]),
        ({"expires_at_ms": None}, {"expires_at_ms": 0}, [
            ("changed", "expires_at_ms", "none", "1970-01-01 00:00:00 UTC")
        ]),
        ({"locked_until_ms": 10**20}, {}, [("removed", "locked_until_ms", f"{10**20:,}")]),
        ({"grace_ms": 1}, {"grace_ms": 3_600_000}, [("changed", "grace_ms", "1", "3,600,000")]),
    ],
)  # fmt: skip
def test_of_whatever_sort_the_fields_are(
    before: dict[str, Any], after: dict[str, Any], expected: list[tuple[str, ...]]
) -> None:
    """Objects are compared within, texts and lists as a whole; instants are shown as such."""
    assert told(before, after) == expected


def test_a_long_text_is_cut_and_says_so() -> None:
    """The file has all of it."""
    (found,) = differences(None, {"x": "y" * 1000})
    assert found.after == "y" * 400 + "…"


def test_a_summary_says_two_and_counts_the_rest() -> None:
    """So that a line says what an entry is about; the id stands beside it anyway."""
    found = [Difference(name, "1", "2") for name in ("id", "a", "b", "c", "d")]
    assert [summary(found[:count]) for count in range(1, 6)] == [
        "", "a 1 → 2", "a 1 → 2, b 1 → 2", "a 1 → 2, b 1 → 2 and 1 more",
        "a 1 → 2, b 1 → 2 and 2 more",
    ]  # fmt: skip
    assert summary([Difference("a", None, "y" * 99)]) == "a " + "y" * 40 + "…"
    assert summary([Difference("a", "gone", None)]) == "a gone"
