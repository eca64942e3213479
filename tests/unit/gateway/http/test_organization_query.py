"""What is asked of an organization's usage, and its buckets."""

from datetime import UTC, datetime
from urllib.parse import parse_qsl

import pytest

from gateway.errors import InvalidRequest
from gateway.http.organization_query import (
    COMPLETIONS,
    COSTS,
    Bucket,
    BucketQuery,
    Endpoint,
    read_buckets,
)

DAY_S = 86_400
MIDNIGHT_S = int(datetime(2026, 11, 30, tzinfo=UTC).timestamp())


def asked(query: str, endpoint: Endpoint = COMPLETIONS, now_s: int = MIDNIGHT_S) -> BucketQuery:
    """As an address has it."""
    return read_buckets(parse_qsl(query, keep_blank_values=True), endpoint, now_s=now_s)


def test_buckets_have_no_gap() -> None:
    """B17: the first begins where the time does, the others at midnight, UTC; the last ends where
    the time does."""
    start_s = MIDNIGHT_S - 2 * DAY_S - 60
    query = asked(f"start_time={start_s}&end_time={MIDNIGHT_S + 5}")
    assert [(start_s - MIDNIGHT_S, end_s - MIDNIGHT_S) for start_s, end_s in query.buckets] == [
        (-2 * DAY_S - 60, -2 * DAY_S), (-2 * DAY_S, -DAY_S), (-DAY_S, 0), (0, 5),
    ]  # fmt: skip
    assert query.next_page is None


@pytest.mark.parametrize(
    ("width", "usual", "most"), [("1d", 7, 31), ("1h", 24, 168), ("1m", 60, 1440)]
)
def test_pages_are_as_long_as_openais(width: str, usual: int, most: int) -> None:
    """By the width of a bucket; a page more is refused."""
    start = f"start_time={MIDNIGHT_S - 400 * DAY_S}&bucket_width={width}"
    assert len(asked(start).buckets) == usual
    assert len(asked(f"{start}&limit={most}").buckets) == most
    with pytest.raises(InvalidRequest, match=f"1 to {most}") as refused:
        asked(f"{start}&limit={most + 1}")
    assert refused.value.param == "limit"


def test_pages_follow_each_other_to_the_end() -> None:
    """However long each is, whatever the time is meanwhile: every bucket once."""
    start = f"start_time={MIDNIGHT_S - 9 * DAY_S + 77}&models[]=m"
    whole = asked(f"{start}&limit=31").buckets
    found: list[Bucket] = []
    page: str | None = ""
    now_s = MIDNIGHT_S
    while page is not None:
        query = asked(f"{start}&limit={len(found) % 3 + 1}{page}", now_s=now_s)
        found += query.buckets
        page = None if query.next_page is None else f"&page={query.next_page}"
        now_s += 3_600
    assert found == whole
    assert found[-1].end_s == MIDNIGHT_S + 1


def test_a_page_is_of_one_question() -> None:
    """Of others it is refused, as is what no answer gave."""
    page = asked(f"start_time={MIDNIGHT_S - 9 * DAY_S}").next_page
    for query in (
        f"start_time={MIDNIGHT_S - 8 * DAY_S}&page={page}",
        f"start_time={MIDNIGHT_S - 9 * DAY_S}&models=m&page={page}",
        f"start_time={MIDNIGHT_S - 9 * DAY_S}&group_by=model&page={page}",
        f"start_time={MIDNIGHT_S - 9 * DAY_S}&page=AAAA",
        f"start_time={MIDNIGHT_S - 9 * DAY_S}&page=é",
        f"start_time={MIDNIGHT_S - 9 * DAY_S}&page={'A' * 32}",
    ):
        with pytest.raises(InvalidRequest, match="page") as refused:
            asked(query)
        assert refused.value.param == "page"


def test_lists_are_given_in_both_ways() -> None:
    """Repeated, as tools do, and with brackets, as SDKs do; in the order of the reference."""
    for query in ("group_by=model&group_by=project_id", "group_by[]=model&group_by[]=project_id"):
        assert asked(f"start_time={MIDNIGHT_S - 60}&{query}").group_by == ("project_id", "model")
    filtered = asked(f"start_time={MIDNIGHT_S - 60}&api_key_ids[]=k&api_key_ids[]=j&batch=True")
    chosen = filtered.chosen(("acme",))
    assert (chosen.api_keys, chosen.request_class) == (("j", "k"), "batch")
    assert asked(f"start_time={MIDNIGHT_S - 60}").chosen(None).request_class is None


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ("", "start_time"),
        ("start_time=", "start_time"),
        ("start_time=1.5", "start_time"),
        ("start_time=-1", "start_time"),
        ("start_time=5", "start_time"),
        (f"start_time={MIDNIGHT_S * 1000}", "start_time"),
        (f"start_time={MIDNIGHT_S}&start_time={MIDNIGHT_S}", "start_time"),
        (f"start_time={MIDNIGHT_S + 1}", "start_time"),
        (f"start_time={MIDNIGHT_S}&end_time={MIDNIGHT_S}", "start_time"),
        (f"start_time={MIDNIGHT_S}&end_time=tomorrow", "end_time"),
        (f"start_time={MIDNIGHT_S}&bucket_width=15m", "bucket_width"),
        (f"start_time={MIDNIGHT_S}&group_by=colour", "group_by"),
        (f"start_time={MIDNIGHT_S}&group_by=line_item", "group_by"),
        (f"start_time={MIDNIGHT_S}&batch=maybe", "batch"),
        (f"start_time={MIDNIGHT_S}&limit=0", "limit"),
        (f"start_time={MIDNIGHT_S}&limit=x", "limit"),
        (f"start_time={MIDNIGHT_S}&user_ids[]=u", "user_ids"),
        (f"start_time={MIDNIGHT_S}&tenant_id=acme", "tenant_id"),
        (f"start_time={MIDNIGHT_S}&start_time[]=1", "start_time"),
        (f"start_time={MIDNIGHT_S}&models={'m' * 201}", "models"),
        (f"start_time={MIDNIGHT_S}" + "&models=m" * 101, "models"),
        (f"start_time={MIDNIGHT_S}&models=%00", "models"),
    ],
)
def test_what_is_wrong_is_named(query: str, param: str) -> None:
    """400, with the parameter."""
    with pytest.raises(InvalidRequest) as refused:
        asked(query)
    assert refused.value.param == param


def test_costs_are_by_day_alone() -> None:
    """As OpenAI's: and of what has no batch."""
    assert len(asked(f"start_time={MIDNIGHT_S - 300 * DAY_S}&limit=180", COSTS).buckets) == 180
    for query, param in (("bucket_width=1h", "bucket_width"), ("batch=true", "batch"),
                         ("models=m", "models"), ("group_by=model", "group_by")):  # fmt: skip
        with pytest.raises(InvalidRequest) as refused:
            asked(f"start_time={MIDNIGHT_S}&{query}", COSTS)
        assert refused.value.param == param
