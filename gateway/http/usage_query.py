"""What is asked of usage, as parameters of an address, and how it is answered."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import msgspec

from billing.postgres.usage_records import GroupBy, UsageFilter
from gateway.adapters.usage_reports import UsageReport, UsageReports, standing_view
from gateway.administration.checks import check_time_zone
from gateway.administration.views import View
from gateway.domain.instants import ms_of, shown
from gateway.errors import Unprocessable, WeirError

DAYS = 30
"""Without `since` the answer is of so many days."""
DAYS_MAX = 400
_EARLIEST, _LATEST = datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
_LIKE = "must be a time like 2027-01-31T12:00:00Z, from 2000 to 2100"


@dataclass(frozen=True)
class UsageQuery:
    """What was asked for; `until` None is up to now."""

    since: datetime
    until: datetime | None
    group_by: GroupBy
    time_zone: str

    async def answer(
        self, reports: UsageReports, *, tenant_id: str | None, asked_by: str | None = None
    ) -> "UsageAnswered":
        """Of one tenant, or of all; `asked_by` a tenant, or finance. Raises LimitReached,
        StoreUnavailable."""
        chosen = UsageFilter(tenant_id=tenant_id, since=self.since, until=self.until)
        report = await reports.report(
            chosen, group_by=self.group_by, time_zone=self.time_zone, asked_by=asked_by
        )
        return UsageAnswered(self, report)


@dataclass(frozen=True)
class UsageAnswered:
    """A query and what was found."""

    query: UsageQuery
    report: UsageReport

    @property
    def head(self) -> View:
        """What it is of."""
        query = self.query
        return {
            "group_by": query.group_by.value,
            "time_zone": query.time_zone,
            "since": shown(ms_of(query.since)),
            "until": shown(ms_of(query.until)),
        }

    @property
    def sums(self) -> list[View]:
        """One a group."""
        return [msgspec.to_builtins(each) for each in self.report.sums]

    @property
    def standing(self) -> View:
        """Whether all is in it."""
        return standing_view(
            self.report.found,
            until_ms=ms_of(self.query.until),
            provisional_requests=self.report.provisional_requests,
        )


def read_query(
    given: Iterable[tuple[str, str]],
    *,
    groups: Collection[GroupBy],
    refusal: type[WeirError],
    also: Collection[str] = (),
) -> UsageQuery:
    """From an address's parameters; the first of `groups` is meant where none is named, and `also`
    are names that somebody else reads. Raises `refusal`, naming the parameter: one that is not
    known is a slip of the pen, and would be an answer to another question."""
    values: dict[str, str] = {}
    known = ("since", "until", "group_by", "time_zone", *also)
    for name, value in given:
        if name not in known:
            raise refusal(f"{name[:40]!r} is no parameter here: {', '.join(known)}", param=name)
        if name in values:
            raise refusal(f"{name} is given twice", param=name)
        values[name] = value
    until = read_instant(values, "until", refusal)
    end = datetime.now(UTC) if until is None else until
    since = read_instant(values, "since", refusal) or max(_EARLIEST, end - timedelta(days=DAYS))
    if until is not None and since >= until:
        raise refusal("since must be before until", param="since")
    if end - since > timedelta(days=DAYS_MAX):
        raise refusal(f"since must be at most {DAYS_MAX} days before until", param="since")
    return UsageQuery(since, until, _group(values, groups, refusal), _zone(values, refusal))


def read_instant(values: Mapping[str, str], name: str, refusal: type[WeirError]) -> datetime | None:
    """An instant among an address's parameters; None where it is not given. Raises `refusal`."""
    if name not in values:
        return None
    try:
        instant = datetime.fromisoformat(values[name])
        if instant.tzinfo is not None and _EARLIEST <= instant <= _LATEST:
            return instant.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise refusal(f"{name} {_LIKE}", param=name)


def _group(
    values: dict[str, str], groups: Collection[GroupBy], refusal: type[WeirError]
) -> GroupBy:
    first, *_ = groups
    named = values.get("group_by", first.value)
    for group in groups:
        if named == group.value:
            return group
    raise refusal(f"group_by must be one of {', '.join(groups)}", param="group_by")


def _zone(values: dict[str, str], refusal: type[WeirError]) -> str:
    try:
        return check_time_zone(values.get("time_zone", "UTC"))
    except Unprocessable as error:
        raise refusal(error.message, param="time_zone") from error
