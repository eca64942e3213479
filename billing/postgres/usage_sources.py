"""Where sums of usage are read from: the coarsest roll-ups that tell apart what is asked for.

Whole days come from roll-ups of days, at the narrowest of their levels; where no tenant or key is
told apart, whole quarters of an hour from the totals of all tenants; other whole quarters from
their own roll-ups. What is marked to be made anew comes from what it will be made of, a quarter's
from its records, and so do the ends of a period that are no whole quarter. All in one statement, so
that what is made anew meanwhile is counted once: the sums are those of the records, to the pico.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

QUARTER = timedelta(minutes=15)
DAY = timedelta(days=1)
COUNTS = (
    "requests", "prompt_tokens", "cached_prompt_tokens", "output_tokens", "reasoning_tokens",
    "cost_pico", "unpriced_requests",
)  # fmt: skip
"""What counted rows have to be summed up."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_OF_TENANT = ("tenant_id", "api_key_id")
_TYPES = {
    "tenant_id": "text", "api_key_id": "text", "model": "text", "class": "text",
    "provider": "text", "currency": "text", "price_id": "bigint", "billable": "boolean",
    "final": "boolean",
}  # fmt: skip
_OF_LEVEL = {"tenant": {"tenant_id"}, "key": {"tenant_id", "api_key_id"}}
"""What levels that are not in full detail tell apart, beside what all do."""
_OF_ALL = {"currency", "billable", "final"}
_ROLLED = ", ".join((*(f"record.{name}" for name in _TYPES), *COUNTS))
_TOTALLED = ", ".join(
    (
        *(
            f"CAST(NULL AS {kind}) AS {name}" if name in _OF_TENANT else f"record.{name}"
            for name, kind in _TYPES.items()
        ),
        *COUNTS,
    )
)
_RAW = ", ".join(
    (
        *(f"record.{name}" for name in _TYPES),
        "1 AS requests",
        *(f"record.{name}" for name in COUNTS[1:5]),
        "coalesce(record.cost_pico, 0) AS cost_pico",
        "CAST(record.cost_pico IS NULL AS integer) AS unpriced_requests",
    )
)
# The marks of quarters, and the records of these and of both ends.
_MARKED = """marked AS MATERIALIZED (
    SELECT DISTINCT bucket, tenant_id FROM usage_rollup_dirty
    WHERE bucket >= :first AND bucket < :last{of_marks}
)"""
_UNMARKED = "(bucket, record.tenant_id) NOT IN (SELECT bucket, tenant_id FROM marked)"
_FROM_RECORDS = f"""SELECT record.admitted_at AS at, {_RAW}
    FROM marked JOIN usage_record AS record
        ON record.tenant_id = marked.tenant_id AND record.admitted_at >= marked.bucket
        AND record.admitted_at < marked.bucket + interval '15 minutes'{{chosen}}
    UNION ALL SELECT record.admitted_at, {_RAW} FROM usage_record AS record
    WHERE record.admitted_at >= :since AND record.admitted_at < :first{{chosen}}
    UNION ALL SELECT record.admitted_at, {_RAW} FROM usage_record AS record
    WHERE record.admitted_at >= :last AND record.admitted_at < :until{{chosen}}"""  # noqa: S608 - names of columns, from above
_FROM_QUARTERS = f"""SELECT bucket AS at, {_ROLLED} FROM usage_rollup AS record
    WHERE bucket >= :{{first}} AND bucket < :{{last}}{{{{chosen}}}} AND {_UNMARKED}"""  # noqa: S608 - as above
_QUARTERS = f"""
WITH {_MARKED}, counted AS (
    {_FROM_QUARTERS.format(first="first", last="last")}
    UNION ALL {_FROM_RECORDS}
)
"""
# Days in which anything is marked are few, and asked for by themselves: a comparison of a day with
# these costs a row nothing.
_DAYS = f"""
WITH {_MARKED}, stale AS MATERIALIZED (
    SELECT day, tenant_id FROM usage_rollup_day_dirty
    WHERE day >= :first_day AND day < :last_day{{of_marks}}
    UNION SELECT usage_day(bucket), tenant_id FROM marked
    WHERE bucket >= :first_day AND bucket < :last_day
), counted AS (
    SELECT day AS at, {_ROLLED} FROM usage_rollup_day_{{level}} AS record
    WHERE day >= :first_day AND day < :last_day{{chosen}}
        AND day <> ALL (ARRAY(SELECT DISTINCT day FROM stale))
    UNION ALL SELECT day AS at, {_ROLLED} FROM usage_rollup_day_{{level}} AS record
    WHERE day = ANY (ARRAY(SELECT DISTINCT day FROM stale)){{chosen}}
        AND (day, record.tenant_id) NOT IN (SELECT day, tenant_id FROM stale)
    UNION ALL SELECT bucket AS at, {_ROLLED} FROM stale JOIN usage_rollup AS record
        ON record.tenant_id = stale.tenant_id AND bucket >= stale.day
        AND bucket < stale.day + interval '24 hours'{{chosen}} AND {_UNMARKED}
    UNION ALL {_FROM_QUARTERS.format(first="first", last="first_day")}
    UNION ALL {_FROM_QUARTERS.format(first="last_day", last="last")}
    UNION ALL {_FROM_RECORDS}
)
"""  # noqa: S608 - as above
_TOTALS = f"""
WITH {_MARKED}, stale AS MATERIALIZED (
    SELECT bucket FROM usage_rollup_total_dirty WHERE bucket >= :first AND bucket < :last
    UNION SELECT bucket FROM marked
), counted AS (
    SELECT bucket AS at, {_TOTALLED} FROM usage_rollup_total AS record
    WHERE bucket >= :first AND bucket < :last{{chosen}}
        AND bucket NOT IN (SELECT bucket FROM stale)
    UNION ALL SELECT bucket AS at, {_ROLLED} FROM stale JOIN usage_rollup AS record
        USING (bucket) WHERE {_UNMARKED}{{chosen}}
    UNION ALL {_FROM_RECORDS}
)
"""  # noqa: S608 - as above
BUCKET = (
    "CAST(extract(epoch FROM date_bin(CAST(:width AS interval), at,"
    " timestamptz '1970-01-01 00:00:00+00')) AS bigint)"
)
"""The bucket, `:width` long, that a counted row is in, by its beginning in Unix seconds."""


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """Which records: admitted at or after `since` and before `until`; None takes any."""

    since: datetime
    until: datetime
    tenants: Sequence[str] | None = None
    api_keys: Sequence[str] | None = None
    models: Sequence[str] | None = None
    request_class: str | None = None
    currency: str | None = None
    """With those whose currency nobody knows."""

    def counted(
        self, apart: Collection[str], *, width: timedelta | None = None
    ) -> tuple[str, dict[str, Any]]:
        """The beginning of a statement that names these records' sums `counted`, and its values.
        Rows have `at`, the columns named in `apart` (a column of a record that is not named may be
        NULL) and COUNTS. Of buckets `width` long, from the epoch on, no row is in two; None where
        all is one sum."""
        chosen, values = self._conditions()
        needed = {*apart, *self._filtered}
        of_marks = "" if self.tenants is None else " AND tenant_id = ANY (CAST(:tenants AS text[]))"
        if width is not None and width % QUARTER:
            values |= {"first": self.until, "last": self.until}
            return _QUARTERS.format(chosen=chosen, of_marks=of_marks), values
        first, last = _whole(self.since, self.until, QUARTER)
        values |= {"first": first, "last": last}
        if not needed & set(_OF_TENANT):
            return _TOTALS.format(chosen=chosen, of_marks=of_marks), values
        if width is None or not width % DAY:
            # Today has no roll-up yet: it would all be marked.
            until_day = min(last, max(first, datetime.now(UTC)))
            first_day, last_day = _whole(first, until_day, DAY)
            if first_day == last_day:
                first_day = last_day = last
            values |= {"first_day": first_day, "last_day": last_day}
            return _DAYS.format(chosen=chosen, of_marks=of_marks, level=_level(needed)), values
        return _QUARTERS.format(chosen=chosen, of_marks=of_marks), values

    @property
    def _lists(self) -> tuple[tuple[str, str, Sequence[str] | None], ...]:
        return (
            ("tenants", "tenant_id", self.tenants),
            ("api_keys", "api_key_id", self.api_keys),
            ("models", "model", self.models),
        )

    @property
    def _filtered(self) -> set[str]:
        found = {column for _, column, wanted in self._lists if wanted is not None}
        return found if self.request_class is None else {*found, "class"}

    def _conditions(self) -> tuple[str, dict[str, Any]]:
        values: dict[str, Any] = {"since": self.since, "until": self.until}
        chosen = ""
        for name, column, wanted in self._lists:
            if wanted is not None:
                chosen += f" AND record.{column} = ANY (CAST(:{name} AS text[]))"
                values[name] = list(wanted)
        if self.request_class is not None:
            chosen += " AND record.class = :class"
            values["class"] = self.request_class
        if self.currency is not None:
            chosen += " AND (record.currency = :currency OR record.currency IS NULL)"
            values["currency"] = self.currency
        return chosen, values


def _level(needed: set[str]) -> str:
    return next((name for name, of in _OF_LEVEL.items() if needed <= of | _OF_ALL), "detail")


def _whole(since: datetime, until: datetime, step: timedelta) -> tuple[datetime, datetime]:
    """The whole steps from the epoch on that are between; where there is none, `until` twice."""
    first, last = -(-(since - _EPOCH) // step), (until - _EPOCH) // step
    if first >= last:
        return until, until
    return _EPOCH + first * step, _EPOCH + last * step
