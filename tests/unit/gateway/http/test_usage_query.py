"""What is asked of usage: parameters, and clear words where they are wrong."""

from datetime import UTC, datetime, timedelta

import pytest

from billing.postgres.usage_records import GroupBy
from gateway.errors import InvalidRequest, Unprocessable, WeirError
from gateway.http.usage_query import DAYS, DAYS_MAX, UsageQuery, read_query

GROUPS = (GroupBy.DAY, GroupBy.MODEL)


def read(*given: tuple[str, str], refusal: type[WeirError] = InvalidRequest) -> UsageQuery:
    """As a tenant's."""
    return read_query(given, groups=GROUPS, refusal=refusal)


def test_nothing_asked_is_the_last_days() -> None:
    """Up to now, by the first group, in UTC."""
    query = read()
    assert (query.until, query.group_by, query.time_zone) == (None, GroupBy.DAY, "UTC")
    assert abs(query.since - datetime.now(UTC) + timedelta(days=DAYS)) < timedelta(minutes=1)


def test_all_of_it() -> None:
    """Times with their offset become UTC; without `since` it ends at `until`."""
    until = datetime(2026, 11, 30, 22, tzinfo=UTC)
    query = read(
        ("since", "2026-11-01T00:00:00+02:00"),
        ("until", "2026-11-30T22:00:00Z"),
        ("group_by", "model"),
        ("time_zone", "Europe/Berlin"),
    )
    since = datetime(2026, 10, 31, 22, tzinfo=UTC)
    assert query == UsageQuery(since, until, GroupBy.MODEL, "Europe/Berlin")
    assert read(("until", "2026-11-30T22:00:00Z")).since == until - timedelta(days=DAYS)


@pytest.mark.parametrize(
    ("given", "param"),
    [
        ([("since", "yesterday")], "since"),
        ([("since", "2026-11-01T00:00:00")], "since"),
        ([("since", "2026-11-01T00:00:00 02:00")], "since"),
        ([("until", "")], "until"),
        ([("until", "0001-01-01T00:00:00+23:59")], "until"),
        ([("until", "9999-12-31T23:59:59-23:59")], "until"),
        ([("since", "2026-11-01T00:00:00Z"), ("until", "2026-11-01T00:00:00Z")], "since"),
        ([("since", "2020-01-01T00:00:00Z"), ("until", "2026-01-01T00:00:00Z")], "since"),
        ([("since", "2020-01-01T00:00:00Z")], "since"),
        ([("group_by", "tenant")], "group_by"),
        ([("group_by", "")], "group_by"),
        ([("time_zone", "Mars/Olympus")], "time_zone"),
        ([("time_zone", "../etc/passwd")], "time_zone"),
        ([("form", "2026-11-01T00:00:00Z")], "form"),
        ([("group_by", "day"), ("group_by", "model")], "group_by"),
    ],
)
@pytest.mark.parametrize("refusal", [InvalidRequest, Unprocessable])
def test_what_is_wrong_is_named(
    given: list[tuple[str, str]], param: str, refusal: type[WeirError]
) -> None:
    """In the caller's own kind of error, with the parameter."""
    with pytest.raises(refusal) as caught:
        read(*given, refusal=refusal)
    assert caught.value.param == param
    assert param in caught.value.message


def test_the_longest_time_is_allowed() -> None:
    """To the second."""
    since = datetime(2025, 1, 1, tzinfo=UTC)
    until = since + timedelta(days=DAYS_MAX)
    query = read(("since", since.isoformat()), ("until", until.isoformat()))
    assert query.since == since
