"""What the page of usage is asked to show. All of it is in the address, so that a link is a view.

Days are UTC. Whoever reads a link with a period, such as the last 7 days, sees those before their
own today; a link with dates shows the same days for good.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from urllib.parse import urlencode

from billing.postgres.usage_charts import Measure, Place
from billing.postgres.usage_sources import Chosen
from gateway.console.forms import Form
from gateway.domain.tenant import RequestClass

DAYS_MAX = 400
PERIODS = {
    "today": "Today",
    "7d": "7 days",
    "30d": "30 days",
    "month": "This month",
    "last-month": "Last month",
}
_USUAL = "30d"
GROUPS = {"tenant": "tenant_id", "key": "api_key_id", "model": "model", "class": "class"}
"""What usage is told apart by, and the column that says so."""


@dataclass(frozen=True)
class Step:
    """How long one bar of the plot is, and how many days may be drawn so."""

    name: str
    length: timedelta
    days_max: int


STEPS = {
    "15min": Step("15 minutes", timedelta(minutes=15), 3),
    "hour": Step("hour", timedelta(hours=1), 31),
    "day": Step("day", timedelta(days=1), DAYS_MAX),
}
_HOURLY_DAYS_MAX = 3
_FILTERS = ("tenant_id", "key_id", "model", "class")


@dataclass(frozen=True, kw_only=True)
class Ask:
    """A view of usage: from the beginning of `first` to the end of `last`."""

    period: str
    """One of PERIODS; empty where dates were chosen."""
    first: date
    last: date
    by: str
    """One of GROUPS."""
    step: str
    """One of STEPS."""
    step_wished: str
    """What was chosen of them; empty where whatever fits is meant."""
    measure: Measure
    tenant_id: str | None
    key_id: str | None
    model: str | None
    request_class: str | None
    after: Place | None

    @property
    def since(self) -> datetime:
        """The first instant."""
        return datetime(self.first.year, self.first.month, self.first.day, tzinfo=UTC)

    @property
    def until(self) -> datetime:
        """The end, not included."""
        after = self.last + timedelta(days=1)
        return datetime(after.year, after.month, after.day, tzinfo=UTC)

    @property
    def days(self) -> int:
        """How many days are shown."""
        return (self.last - self.first).days + 1

    @property
    def width(self) -> timedelta:
        """Of one bar."""
        return STEPS[self.step].length

    @property
    def chosen(self) -> Chosen:
        """The records that it is about."""
        return Chosen(
            since=self.since,
            until=self.until,
            tenants=None if self.tenant_id is None else [self.tenant_id],
            api_keys=None if self.key_id is None else [self.key_id],
            models=None if self.model is None else [self.model],
            request_class=self.request_class,
        )

    def starts(self, now: datetime) -> list[int]:
        """When each bar begins, in Unix seconds, none of them after now."""
        step_s = int(self.width.total_seconds())
        end_s = min(int(self.until.timestamp()), int(now.timestamp()) + 1)
        return list(range(int(self.since.timestamp()), end_s, step_s))

    def query(self, **changes: str | None) -> str:
        """The address's parameters of this view, some of them changed; None takes one away. What
        is as usual is not said. The list begins anew unless `after` is among the changes."""
        dates: dict[str, str | None] = {"period": self.period or None, "from": None, "to": None}
        if not self.period:
            dates |= {"from": self.first.isoformat(), "to": self.last.isoformat()}
        if "period" in changes:
            dates = {"from": None, "to": None}
        values = {
            **dates,
            "by": self.by,
            "step": self.step_wished or None,
            "show": None if self.measure is Measure.TOKENS else self.measure.value,
            **dict(zip(_FILTERS, self._filters, strict=True)),
            **changes,
        }
        return urlencode({name: value for name, value in values.items() if value})

    @property
    def _filters(self) -> tuple[str | None, ...]:
        return self.tenant_id, self.key_id, self.model, self.request_class

    @property
    def is_filtered(self) -> bool:
        """Whether some usage of the period is left out."""
        return any(self._filters)


def read_ask(form: Form, now: datetime, *, groups: Sequence[str]) -> Ask:
    """From the address's parameters; the first of `groups` is meant where none is named. What is
    wrong is noted at its field, and the usual is meant instead."""
    today = now.astimezone(UTC).date()
    period, first, last = _dates(form, today)
    measure = _one_of(form, "show", [each.value for each in Measure]) or Measure.TOKENS
    wished = _one_of(form, "step", list(STEPS)) or ""
    return Ask(
        period=period,
        first=first,
        last=last,
        by=_one_of(form, "by", groups) or groups[0],
        step=_step(wished, (last - first).days + 1),
        step_wished=wished,
        measure=Measure(measure),
        tenant_id=form.optional("tenant_id"),
        key_id=form.optional("key_id"),
        model=form.optional("model"),
        request_class=_one_of(form, "class", [each.value for each in RequestClass]),
        after=_place(form),
    )


def _step(wished: str, days: int) -> str:
    """What was chosen, or the next longer one that so many days can be drawn with."""
    names = list(STEPS)
    least = names.index(wished or ("hour" if days <= _HOURLY_DAYS_MAX else "day"))
    return next(name for name in names[least:] if days <= STEPS[name].days_max)


def _dates(form: Form, today: date) -> tuple[str, date, date]:
    """A period, or the dates in the form, which count where they are not the period's own."""
    period = _one_of(form, "period", list(PERIODS)) or ""
    usual = _days_of(period or _USUAL, today)
    first, last = _date(form, "from"), _date(form, "to")
    if first is None and last is None:
        return period or _USUAL, *usual
    first, last = first or usual[0], last or max(usual[1], first or usual[1])
    if (first, last) == usual and period:
        return period, first, last
    if first > last:
        form.errors["from"] = "must not be after the last day"
    elif first > today:
        form.errors["from"] = "is after today, which is " + today.isoformat() + " in UTC"
    elif (last - first).days + 1 > DAYS_MAX:
        form.errors["from"] = f"must be at most {DAYS_MAX} days before the last day"
    else:
        return "", first, last
    return _USUAL, *_days_of(_USUAL, today)


def _days_of(period: str, today: date) -> tuple[date, date]:
    match period:
        case "today":
            return today, today
        case "7d":
            return today - timedelta(days=6), today
        case "month":
            return today.replace(day=1), today
        case "last-month":
            last = today.replace(day=1) - timedelta(days=1)
            return last.replace(day=1), last
        case _:
            return today - timedelta(days=29), today


def _date(form: Form, name: str) -> date | None:
    text = form.optional(name)
    if text is None:
        return None
    try:
        found = date.fromisoformat(text)
    except ValueError:
        form.errors[name] = "must be a day like 2027-01-31"
        return None
    if not 2000 <= found.year < 2100:
        form.errors[name] = "must be a day from 2000 to 2099"
        return None
    return found


def _one_of(form: Form, name: str, known: Sequence[str]) -> str | None:
    text = form.optional(name)
    if text is not None and text not in known:
        form.errors[name] = f"must be one of {', '.join(known)}"
        return None
    return text


def _place(form: Form) -> Place | None:
    text = form.optional("after")
    if text is None:
        return None
    size, _, name = text.partition(":")
    if size.isascii() and size.isdigit() and len(size) <= 30 and name:
        return Place(int(size), name)
    form.errors[""] = "The page of the list is none that a page led to."
    return None


def place_text(place: Place | None) -> str | None:
    """A place in the list, as it stands in an address."""
    return None if place is None else f"{place.size}:{place.name}"
