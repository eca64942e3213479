"""What the address of the page of usage means."""

from datetime import UTC, date, datetime, timedelta
from urllib.parse import parse_qs, parse_qsl

import pytest

from billing.postgres.usage_charts import Measure, Place
from gateway.console.forms import Form
from gateway.console.usage_ask import GROUPS, Ask, place_text, read_ask

NOW = datetime(2026, 3, 5, 14, 20, tzinfo=UTC)
TODAY = NOW.date()


def asked(query: str) -> tuple[Ask, Form]:
    """What is meant by an address, and what is wrong with it."""
    form = Form(parse_qs(query))
    return read_ask(form, NOW, groups=tuple(GROUPS)), form


@pytest.mark.parametrize(
    ("query", "period", "first", "last", "step"),
    [
        ("", "30d", date(2026, 2, 4), TODAY, "day"),
        ("period=today", "today", TODAY, TODAY, "hour"),
        ("period=7d", "7d", date(2026, 2, 27), TODAY, "day"),
        ("period=month", "month", date(2026, 3, 1), TODAY, "day"),
        ("period=last-month", "last-month", date(2026, 2, 1), date(2026, 2, 28), "day"),
        ("from=2026-01-01&to=2026-01-03", "", date(2026, 1, 1), date(2026, 1, 3), "hour"),
        ("from=2026-03-05", "", TODAY, TODAY, "hour"),
        ("to=2026-02-10", "", date(2026, 2, 4), date(2026, 2, 10), "day"),
        # The form sends the dates of its period: they count once they are others.
        ("period=7d&from=2026-02-27&to=2026-03-05", "7d", date(2026, 2, 27), TODAY, "day"),
        ("period=7d&from=2026-02-26&to=2026-03-05", "", date(2026, 2, 26), TODAY, "day"),
    ],
)
def test_periods_are_days_of_utc(
    query: str, period: str, first: date, last: date, step: str
) -> None:
    """Each from the first instant of its first day to the last of its last."""
    ask, form = asked(query)
    assert form.ok
    assert (ask.period, ask.first, ask.last, ask.step) == (period, first, last, step)
    assert ask.since == datetime(first.year, first.month, first.day, tzinfo=UTC)
    assert ask.until == ask.since + timedelta(days=ask.days)


def test_bars_are_of_the_time_that_has_been() -> None:
    """None begins after now; of a time that is over there are all."""
    ask, _ = asked("period=today&step=15min")
    starts = ask.starts(NOW)
    assert starts[0] == int(ask.since.timestamp())
    assert datetime.fromtimestamp(starts[-1], UTC) == NOW.replace(minute=15)
    ask, _ = asked("from=2026-03-01&to=2026-03-02&step=hour")
    assert len(ask.starts(NOW)) == 48


@pytest.mark.parametrize(
    ("query", "step"),
    [
        ("step=15min&from=2026-03-03&to=2026-03-05", "15min"),
        ("step=15min&from=2026-03-02&to=2026-03-05", "hour"),
        ("step=hour&from=2026-02-03&to=2026-03-05", "hour"),
        ("step=15min&from=2026-02-02&to=2026-03-05", "day"),
        ("step=day&period=today", "day"),
    ],
)
def test_too_many_bars_are_longer_ones(query: str, step: str) -> None:
    """And what was wished is kept, for a shorter time."""
    ask, form = asked(query)
    assert form.ok
    assert ask.step == step
    assert f"step={ask.step_wished}" in query


@pytest.mark.parametrize(
    "query",
    [
        "",
        "period=7d&by=key&tenant_id=acme&show=requests&step=hour",
        "from=2026-01-01&to=2026-01-31&by=model&class=batch&model=a%26b&key_id=k",
    ],
)
def test_a_view_is_its_address(query: str) -> None:
    """Read again it is the same view; a change is of that alone."""
    ask, _ = asked(query)
    again, form = asked(ask.query())
    assert form.ok
    assert again == ask
    changed, _ = asked(ask.query(tenant_id=None, by="class", period="today"))
    assert (changed.tenant_id, changed.by, changed.period) == (None, "class", "today")
    assert (changed.model, changed.measure) == (ask.model, ask.measure)


def test_the_list_goes_on_at_a_place() -> None:
    """Of whatever name; another view begins anew."""
    place = Place(12, "a:b&c")
    ask, _ = asked("")
    on, form = asked(ask.query(after=place_text(place)))
    assert form.ok
    assert on.after == place
    assert "after" not in dict(parse_qsl(on.query(by="key")))
    assert asked("after=x")[1].errors
    assert asked("after=-1:x")[1].errors


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("period=year", "period"),
        ("from=2026-03-06", "from"),
        ("from=0001-01-01", "from"),
        ("to=tomorrow", "to"),
        ("from=2025-01-28&to=2026-03-05", "from"),
        ("show=money", "show"),
        ("step=week", "step"),
        ("by=provider", "by"),
        ("class=urgent", "class"),
    ],
)
def test_what_is_wrong_is_said_at_its_field(query: str, field: str) -> None:
    """And the usual is meant, never something in between."""
    ask, form = asked(query)
    assert list(form.errors) == [field]
    if field in ("from", "to", "period"):
        assert (ask.first, ask.last) == (date(2026, 2, 4), TODAY)
    assert ask.measure is Measure.TOKENS
