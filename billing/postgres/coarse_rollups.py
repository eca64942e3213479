"""Roll-ups of days and weeks, and of all tenants together, made anew from finer ones: of whatever
is marked as changed and is over. What is not over stays marked, and whoever reads sums up what it
will be made of."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import RowMapping, TextClause, text
from sqlalchemy.ext.asyncio import AsyncConnection

from billing.domain.reconciliation.rollups import Difference
from billing.postgres.rollups import COUNTS, take_turn

AT_ONCE = 500
"""Days or weeks of tenants in one transaction."""
TOTALS_AT_ONCE = 96
"""Quarters of an hour of all tenants in one transaction."""
ALL_TENANTS = "(all tenants)"
DAY, WEEK = timedelta(days=1), timedelta(days=7)
_MONDAY = datetime(1970, 1, 5, tzinfo=UTC)
_TOTAL = ("model", "class", "provider", "currency", "price_id", "billable", "final")
_DETAIL = ("api_key_id", *_TOTAL)
_COARSE = ", ".join(("level", "start", "tenant_id", *_DETAIL, *COUNTS))
_SUMS = ", ".join(f"sum({name}) AS {name}" for name in COUNTS)
_DAYS = f"""
SELECT CASE GROUPING(api_key_id, model)
        WHEN 0 THEN 'day_detail' WHEN 1 THEN 'day_key' ELSE 'day_tenant' END AS level,
    start, tenant_id, {", ".join(_DETAIL)}, {_SUMS}
FROM {{quarters}} GROUP BY GROUPING SETS (
    (start, tenant_id, {", ".join(_DETAIL)}),
    (start, tenant_id, api_key_id, currency, billable, final),
    (start, tenant_id, currency, billable, final)
)
"""  # noqa: S608 - names of columns, from above
_WEEKS = f"""
SELECT CASE GROUPING(api_key_id) WHEN 0 THEN 'week_key' ELSE 'week_tenant' END AS level,
    start, tenant_id, api_key_id, CAST(NULL AS text) AS model, CAST(NULL AS text) AS class,
    CAST(NULL AS text) AS provider, currency, CAST(NULL AS bigint) AS price_id, billable, final,
    {_SUMS}
FROM {{days}} GROUP BY GROUPING SETS (
    (start, tenant_id, api_key_id, currency, billable, final),
    (start, tenant_id, currency, billable, final)
)
"""  # noqa: S608 - as above
_TOTALS = (
    f"SELECT bucket, {', '.join(_TOTAL)}, {_SUMS} FROM usage_rollup"  # noqa: S608 - as above
    f" WHERE {{where}} GROUP BY bucket, {', '.join(_TOTAL)}"
)

# A mark that is there already is not set again, so that one set meanwhile could be taken with it.
# But who changes roll-ups has the turn, as who takes marks has.
_TAKE_TOTALS = text("""
DELETE FROM usage_rollup_total_dirty AS mark USING (
    SELECT bucket FROM usage_rollup_total_dirty
    WHERE bucket <= now() - interval '15 minutes' ORDER BY bucket LIMIT :most
) AS oldest
WHERE mark.bucket = oldest.bucket RETURNING mark.bucket
""")
_CLEAR_TOTALS = text("DELETE FROM usage_rollup_total WHERE bucket = ANY (:buckets)")
_MAKE_TOTALS = text(
    f"INSERT INTO usage_rollup_total (bucket, {', '.join((*_TOTAL, *COUNTS))}) "
    + _TOTALS.format(where="bucket = ANY (:buckets)")
)
_MADE = (
    "unnest(CAST(:starts AS timestamptz[]), CAST(:tenants AS text[])) AS made (start, tenant_id)"
)


def _take(span: str, length: str) -> TextClause:
    """The oldest marks of days or weeks that are over."""
    return text(
        f"DELETE FROM usage_rollup_{span}_dirty AS mark USING ("  # noqa: S608 - as above
        f"SELECT start, tenant_id FROM usage_rollup_{span}_dirty"
        f" WHERE start <= now() - interval '{length}' ORDER BY start, tenant_id LIMIT :most"
        ") AS oldest WHERE mark.start = oldest.start AND mark.tenant_id = oldest.tenant_id"
        " RETURNING mark.start, mark.tenant_id"
    )


def _clear(span: str) -> TextClause:
    return text(
        f"DELETE FROM usage_rollup_coarse AS old USING {_MADE}"  # noqa: S608 - as above
        " WHERE old.start = made.start AND old.tenant_id = made.tenant_id"
        f" AND old.level LIKE '{span}_%'"
    )


_TAKE_DAYS, _CLEAR_DAYS = _take("day", "24 hours"), _clear("day")
_MAKE_DAYS = text(
    f"INSERT INTO usage_rollup_coarse ({_COARSE}) "
    + _DAYS.format(
        quarters=f"{_MADE} JOIN usage_rollup USING (tenant_id)"
        " WHERE bucket >= start AND bucket < start + interval '24 hours'"
    )
)
_MARK_WEEKS = text(
    "INSERT INTO usage_rollup_week_dirty (start, tenant_id)"  # noqa: S608 - as above
    f" SELECT DISTINCT usage_week(start), tenant_id FROM {_MADE} ON CONFLICT DO NOTHING"
)
_TAKE_WEEKS, _CLEAR_WEEKS = _take("week", "168 hours"), _clear("week")
_DAYS_OF_WEEKS = f"""(
    SELECT made.start, day.tenant_id, api_key_id, currency, billable, final, {", ".join(COUNTS)}
    FROM {_MADE} JOIN usage_rollup_day_key AS day ON day.tenant_id = made.tenant_id
        AND day.start >= made.start AND day.start < made.start + interval '168 hours'
) AS days"""  # noqa: S608 - as above
_MAKE_WEEKS = text(
    f"INSERT INTO usage_rollup_coarse ({_COARSE}) {_WEEKS.format(days=_DAYS_OF_WEEKS)}"
)


async def make_coarser(connection: AsyncConnection) -> int | None:
    """Make some totals, days and weeks anew that are marked and over, the oldest first, within the
    caller's transaction; returns how many, None where somebody else makes roll-ups now."""
    if not await take_turn(connection):
        return None
    totals = (await connection.execute(_TAKE_TOTALS, {"most": TOTALS_AT_ONCE})).scalars().all()
    if totals:
        await connection.execute(_CLEAR_TOTALS, {"buckets": totals})
        await connection.execute(_MAKE_TOTALS, {"buckets": totals})
    days = await _make(connection, _TAKE_DAYS, _CLEAR_DAYS, _MAKE_DAYS, _MARK_WEEKS)
    # A week is made of its days: while some are left it would be made again.
    weeks = 0 if days else await _make(connection, _TAKE_WEEKS, _CLEAR_WEEKS, _MAKE_WEEKS)
    return len(totals) + days + weeks


async def _make(connection: AsyncConnection, take: TextClause, *statements: TextClause) -> int:
    marks = (await connection.execute(take, {"most": AT_ONCE})).all()
    if marks:
        made = {"starts": [row.start for row in marks], "tenants": [row.tenant_id for row in marks]}
        for statement in statements:
            await connection.execute(statement, made)
    return len(marks)


def _differing(kept: str, made: str, keys: Sequence[str], unmarked: str) -> TextClause:
    """Where what is kept is not what would be made now, and not marked either."""
    both = ", ".join(f"coalesce(made.{name}, kept.{name}) AS {name}" for name in keys)
    counts = ", ".join(
        f"coalesce(kept.{name}, 0) AS rolled_{name}, coalesce(made.{name}, 0) AS raw_{name}"
        for name in COUNTS
    )
    same = " AND ".join(
        f"made.{name} {'=' if at < 2 else 'IS NOT DISTINCT FROM'} kept.{name}"
        for at, name in enumerate(keys)
    )
    other = " OR ".join(f"made.{name} IS DISTINCT FROM kept.{name}" for name in COUNTS)
    return text(
        f"WITH made AS ({made}), kept AS ({kept}), differing AS (SELECT {both}, {counts}"  # noqa: S608 - as above
        f" FROM made FULL JOIN kept ON {same} WHERE {other})"
        f" SELECT * FROM differing WHERE {unmarked} ORDER BY 1, 2 LIMIT :limit"
    )


def _spans_differ(span: str, made: str) -> TextClause:
    return _differing(
        "SELECT * FROM usage_rollup_coarse"  # noqa: S608 - as above
        f" WHERE level LIKE '{span}_%' AND start >= :since AND start < :until",
        made,
        ("start", "tenant_id", "level", *_DETAIL),
        f"(start, tenant_id) NOT IN (SELECT start, tenant_id FROM usage_rollup_{span}_dirty)",  # noqa: S608 - as above
    )


_TOTALS_DIFFER = _differing(
    "SELECT * FROM usage_rollup_total WHERE bucket >= :since AND bucket < :until",
    _TOTALS.format(where="bucket >= :since AND bucket < :until"),
    ("bucket", *_TOTAL),
    "bucket NOT IN (SELECT bucket FROM usage_rollup_total_dirty)",
)
_DAYS_DIFFER = _spans_differ(
    "day",
    _DAYS.format(
        quarters="(SELECT usage_day(bucket) AS start, * FROM usage_rollup"
        " WHERE bucket >= :since AND bucket < :until) AS quarters"
    ),
)
_WEEKS_DIFFER = _spans_differ(
    "week",
    _WEEKS.format(
        days="(SELECT usage_week(start) AS start, tenant_id, api_key_id, currency,"  # noqa: S608 - as above
        " billable, final,"
        f" {', '.join(COUNTS)} FROM usage_rollup_day_key"
        " WHERE start >= :since AND start < :until) AS days"
    ),
)


async def load_coarse_differences(
    connection: AsyncConnection, since: datetime, until: datetime, *, limit: int
) -> Sequence[Difference]:
    """Where totals and days differ from the quarters' roll-ups, and weeks from their days', and are
    not marked, the first so many of each: of days that are whole in the period, and of weeks that
    end in it."""
    period: dict[str, Any] = {"since": since, "until": until, "limit": limit}
    found = [
        _difference(row, row["bucket"], ALL_TENANTS, _TOTAL)
        for row in (await connection.execute(_TOTALS_DIFFER, period)).mappings()
    ]
    first_day = since + (_MONDAY - since) % DAY
    for statement, first, step in (
        (_DAYS_DIFFER, first_day, DAY),
        (_WEEKS_DIFFER, since - (since - _MONDAY) % WEEK, WEEK),
    ):
        period |= {"since": first, "until": until - (until - _MONDAY) % step}
        found += [
            _difference(row, row["start"], row["tenant_id"], ("level", *_DETAIL))
            for row in (await connection.execute(statement, period)).mappings()
        ]
    return found


def _difference(
    row: RowMapping, start: datetime, tenant_id: str, keys: Sequence[str]
) -> Difference:
    return Difference(
        start,
        tenant_id,
        " ".join(f"{name}={row[name]}" for name in keys),
        {name: (int(row[f"rolled_{name}"]), int(row[f"raw_{name}"])) for name in COUNTS},
    )
