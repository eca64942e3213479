"""Where sums of usage are read from: the coarsest roll-ups that tell apart what is asked for.

Whole weeks and days come from roll-ups of these, at the narrowest of their levels; where no tenant
or key is told apart, whole quarters of an hour from the totals of all tenants; other whole quarters
from their own roll-ups. What is marked to be made anew comes from what it will be made of, down to
a quarter's records, and so do the ends of a period that are no whole quarter. All in one statement,
so that what is made anew meanwhile is counted once: the sums are those of the records, to the pico.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

QUARTER = timedelta(minutes=15)
DAY = timedelta(days=1)
WEEK = timedelta(days=7)
COUNTS = (
    "requests", "prompt_tokens", "cached_prompt_tokens", "output_tokens", "reasoning_tokens",
    "cost_pico", "unpriced_requests",
)  # fmt: skip
"""What counted rows have to be summed up."""
BUCKET = (
    "CAST(extract(epoch FROM date_bin(CAST(:width AS interval), at,"
    " timestamptz '1970-01-01 00:00:00+00')) AS bigint)"
)
"""The bucket, `:width` long, that a counted row is in, by its beginning in Unix seconds."""
_MONDAY = datetime(1970, 1, 5, tzinfo=UTC)
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
# What is marked, and with it what is made of it.
_MARKED = """marked AS MATERIALIZED (
    SELECT DISTINCT bucket, tenant_id FROM usage_rollup_dirty
    WHERE bucket >= :first AND bucket < :last{of_marks}
)"""
_DAYS_MARKED = """days_marked AS MATERIALIZED (
    SELECT start, tenant_id FROM usage_rollup_day_dirty
    WHERE start >= :first_day AND start < :last_day{of_marks}
    UNION SELECT usage_day(bucket), tenant_id FROM marked
    WHERE bucket >= :first_day AND bucket < :last_day
)"""
_WEEKS_MARKED = """weeks_marked AS MATERIALIZED (
    SELECT start, tenant_id FROM usage_rollup_week_dirty
    WHERE start >= :first_week AND start < :last_week{of_marks}
    UNION SELECT usage_week(start), tenant_id FROM days_marked
    WHERE start >= :first_week AND start < :last_week
)"""
_TOTALS_MARKED = """totals_marked AS MATERIALIZED (
    SELECT bucket FROM usage_rollup_total_dirty WHERE bucket >= :first AND bucket < :last
    UNION SELECT bucket FROM marked
)"""
_QUARTER_IS_MADE = "(bucket, record.tenant_id) NOT IN (SELECT bucket, tenant_id FROM marked)"


def _is_made(span: str) -> str:
    return f"(record.start, record.tenant_id) NOT IN (SELECT start, tenant_id FROM {span}s_marked)"  # noqa: S608 - a word from below


# Each of these ends where more conditions may follow.
_RECORDS_OF_MARKED = f"""SELECT record.admitted_at AS at, {_RAW}
    FROM marked JOIN usage_record AS record
        ON record.tenant_id = marked.tenant_id AND record.admitted_at >= marked.bucket
        AND record.admitted_at < marked.bucket + interval '15 minutes' WHERE true"""  # noqa: S608 - names of columns, from above
_RECORDS = f"""SELECT record.admitted_at AS at, {_RAW} FROM usage_record AS record
    WHERE record.admitted_at >= :{{first}} AND record.admitted_at < :{{last}}"""  # noqa: S608 - as above
_QUARTERS = f"""SELECT bucket AS at, {_ROLLED} FROM usage_rollup AS record
    WHERE bucket >= :{{first}} AND bucket < :{{last}} AND {_QUARTER_IS_MADE}"""  # noqa: S608 - as above
_QUARTERS_OF_DAYS = f"""SELECT bucket AS at, {_ROLLED}
    FROM days_marked JOIN usage_rollup AS record ON record.tenant_id = days_marked.tenant_id
        AND bucket >= days_marked.start AND bucket < days_marked.start + interval '24 hours'
    WHERE {_QUARTER_IS_MADE}"""  # noqa: S608 - as above
_DAYS_OF_WEEKS = f"""SELECT record.start AS at, {_ROLLED} FROM weeks_marked
    JOIN usage_rollup_day_{{level}} AS record ON record.tenant_id = weeks_marked.tenant_id
        AND record.start >= weeks_marked.start
        AND record.start < weeks_marked.start + interval '168 hours'
    WHERE {_is_made("day")}"""  # noqa: S608 - as above
# Spans in which anything is marked are few, and asked for by themselves: a comparison with these
# costs a row nothing.
_SPANS = f"""SELECT record.start AS at, {_ROLLED} FROM usage_rollup_{{span}}_{{level}} AS record
    WHERE record.start >= :{{first}} AND record.start < :{{last}}
        AND record.start <> ALL (ARRAY(SELECT DISTINCT start FROM {{span}}s_marked))"""  # noqa: S608 - as above
_SPANS_IN_PART = f"""SELECT record.start AS at, {_ROLLED}
    FROM usage_rollup_{{span}}_{{level}} AS record
    WHERE record.start = ANY (ARRAY(SELECT DISTINCT start FROM {{span}}s_marked
            WHERE start >= :{{first}} AND start < :{{last}}))
        AND {{is_made}}"""  # noqa: S608 - as above
_TOTALS = f"""SELECT bucket AS at, {_TOTALLED} FROM usage_rollup_total AS record
    WHERE bucket >= :first AND bucket < :last
        AND bucket NOT IN (SELECT bucket FROM totals_marked)"""  # noqa: S608 - as above
_QUARTERS_OF_TOTALS = f"""SELECT bucket AS at, {_ROLLED}
    FROM totals_marked JOIN usage_rollup AS record USING (bucket) WHERE {_QUARTER_IS_MADE}"""  # noqa: S608 - as above


def _spans(span: str, first: str, last: str, level: str) -> list[str]:
    named = {"span": span, "first": first, "last": last, "level": level, "is_made": _is_made(span)}
    return [_SPANS.format(**named), _SPANS_IN_PART.format(**named)]


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
        bounds, marked, parts = self._parts({*apart, *self._filtered}, width)
        of_marks = "" if self.tenants is None else " AND tenant_id = ANY (CAST(:tenants AS text[]))"
        statement = f"WITH {', '.join(marked)}, counted AS ("
        statement += "\nUNION ALL ".join(part + chosen for part in parts) + "\n)"
        return statement.replace("{of_marks}", of_marks), values | bounds

    def _parts(
        self, needed: set[str], width: timedelta | None
    ) -> tuple[dict[str, datetime], list[str], list[str]]:
        """The bounds, the marks, and the statements that are counted together."""
        is_raw = width is not None and width % QUARTER != timedelta(0)
        first, last = (self.until,) * 2 if is_raw else _whole(self.since, self.until, QUARTER)
        bounds = {"first": first, "last": last}
        marked = [_MARKED]
        parts = [_RECORDS_OF_MARKED]
        if self.since < first:
            parts.append(_RECORDS.format(first="since", last="first"))
        if last < self.until:
            parts.append(_RECORDS.format(first="last", last="until"))
        if is_raw:
            return bounds, marked, parts
        if not needed & set(_OF_TENANT):
            return bounds, [*marked, _TOTALS_MARKED], [*parts, _TOTALS, _QUARTERS_OF_TOTALS]
        if width is not None and width % DAY:
            return bounds, marked, [*parts, _QUARTERS.format(first="first", last="last")]
        level = next((name for name, of in _OF_LEVEL.items() if needed <= of | _OF_ALL), "detail")
        # Today has no roll-up yet: it would all be marked.
        first_day, last_day = _whole(first, max(first, min(last, datetime.now(UTC))), DAY)
        first_week, last_week = _whole(first_day, last_day, WEEK)
        if width is not None or level == "detail":
            first_week = last_week = last_day
        bounds |= {
            "first_day": first_day, "last_day": last_day,
            "first_week": first_week, "last_week": last_week,
        }  # fmt: skip
        parts += [
            _QUARTERS.format(first="first", last="first_day"),
            _QUARTERS.format(first="last_day", last="last"),
            _QUARTERS_OF_DAYS,
            *_spans("day", "first_day", "first_week", level),
        ]
        marked.append(_DAYS_MARKED)
        if first_week < last_week:
            parts += [
                _DAYS_OF_WEEKS.format(level=level),
                *_spans("week", "first_week", "last_week", level),
                *_spans("day", "last_week", "last_day", level),
            ]
            marked.append(_WEEKS_MARKED)
        return bounds, marked, parts

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


def _whole(since: datetime, until: datetime, step: timedelta) -> tuple[datetime, datetime]:
    """The whole steps, weeks from Monday on, that are between; where there is none, `until`
    twice."""
    first, last = -(-(since - _MONDAY) // step), (until - _MONDAY) // step
    if first >= last:
        return until, until
    return _MONDAY + first * step, _MONDAY + last * step
