"""Roll-ups of days, and of all tenants together, made anew from the roll-ups of quarters: of
whatever is marked as changed and is over. What is not over stays marked, and whoever reads sums up
its quarters."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import RowMapping, text
from sqlalchemy.ext.asyncio import AsyncConnection

from billing.domain.reconciliation.rollups import Difference
from billing.postgres.rollups import COUNTS, take_turn

DAYS_AT_ONCE = 500
"""Days of tenants in one transaction."""
TOTALS_AT_ONCE = 96
"""Quarters of an hour of all tenants in one transaction."""
ALL_TENANTS = "(all tenants)"
DAY = timedelta(days=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TOTAL = ("model", "class", "provider", "currency", "price_id", "billable", "final")
_DETAIL = ("api_key_id", *_TOTAL)
_SUMS = ", ".join(f"sum({name}) AS {name}" for name in COUNTS)
_DAYS = f"""
SELECT CASE GROUPING(api_key_id, model) WHEN 0 THEN 'detail' WHEN 1 THEN 'key' ELSE 'tenant' END
        AS level, day, tenant_id, {", ".join(_DETAIL)}, {_SUMS}
FROM {{quarters}} GROUP BY GROUPING SETS (
    (day, tenant_id, {", ".join(_DETAIL)}),
    (day, tenant_id, api_key_id, currency, billable, final),
    (day, tenant_id, currency, billable, final)
)
"""  # noqa: S608 - names of columns, from above
_TOTALS = (
    f"SELECT bucket, {', '.join(_TOTAL)}, {_SUMS} FROM usage_rollup"  # noqa: S608 - as above
    f" WHERE {{where}} GROUP BY bucket, {', '.join(_TOTAL)}"
)

# A mark that is there already is not set again, so that one set meanwhile could be taken with it.
# But who changes roll-ups has the turn, as who takes marks has.
_TAKE_DAYS = text("""
DELETE FROM usage_rollup_day_dirty AS mark USING (
    SELECT day, tenant_id FROM usage_rollup_day_dirty
    WHERE day <= now() - interval '24 hours' ORDER BY day, tenant_id LIMIT :most
) AS oldest
WHERE mark.day = oldest.day AND mark.tenant_id = oldest.tenant_id
RETURNING mark.day, mark.tenant_id
""")
_TAKE_TOTALS = text("""
DELETE FROM usage_rollup_total_dirty AS mark USING (
    SELECT bucket FROM usage_rollup_total_dirty
    WHERE bucket <= now() - interval '15 minutes' ORDER BY bucket LIMIT :most
) AS oldest
WHERE mark.bucket = oldest.bucket RETURNING mark.bucket
""")
_MADE = "unnest(CAST(:days AS timestamptz[]), CAST(:tenants AS text[])) AS made (day, tenant_id)"
_CLEAR_DAYS = text(
    f"DELETE FROM usage_rollup_day AS old USING {_MADE}"  # noqa: S608 - as above
    " WHERE old.day = made.day AND old.tenant_id = made.tenant_id"
)
_MAKE_DAYS = text(
    "INSERT INTO usage_rollup_day"
    f" (level, day, tenant_id, {', '.join((*_DETAIL, *COUNTS))}) "
    + _DAYS.format(
        quarters=f"{_MADE} JOIN usage_rollup USING (tenant_id)"
        " WHERE bucket >= day AND bucket < day + interval '24 hours'"
    )
)
_CLEAR_TOTALS = text("DELETE FROM usage_rollup_total WHERE bucket = ANY (:buckets)")
_MAKE_TOTALS = text(
    f"INSERT INTO usage_rollup_total (bucket, {', '.join((*_TOTAL, *COUNTS))}) "
    + _TOTALS.format(where="bucket = ANY (:buckets)")
)


def _differing(kept: str, made: str, keys: Sequence[str], marked: str) -> str:
    """Where what is kept is not what would be made now, and not marked either."""
    both = ", ".join(f"coalesce(made.{name}, kept.{name}) AS {name}" for name in keys)
    counts = ", ".join(
        f"coalesce(kept.{name}, 0) AS rolled_{name}, coalesce(made.{name}, 0) AS raw_{name}"
        for name in COUNTS
    )
    same = " AND ".join(f"made.{name} IS NOT DISTINCT FROM kept.{name}" for name in keys[2:])
    other = " OR ".join(f"made.{name} IS DISTINCT FROM kept.{name}" for name in COUNTS)
    hashed = " AND ".join(f"made.{name} = kept.{name}" for name in keys[:2])
    return (
        f"WITH made AS ({made}), kept AS ({kept}), differing AS (SELECT {both}, {counts}"  # noqa: S608 - as above
        f" FROM made FULL JOIN kept ON {hashed} AND {same} WHERE {other})"
        f" SELECT * FROM differing WHERE {marked} ORDER BY 1, 2 LIMIT :limit"
    )


_DAYS_DIFFER = text(
    _differing(
        "SELECT * FROM usage_rollup_day WHERE day >= :since AND day < :until",
        _DAYS.format(
            quarters="(SELECT usage_day(bucket) AS day, * FROM usage_rollup"
            " WHERE bucket >= :since AND bucket < :until) AS quarters"
        ),
        ("day", "tenant_id", "level", *_DETAIL),
        "(day, tenant_id) NOT IN (SELECT day, tenant_id FROM usage_rollup_day_dirty)",
    )
)
_TOTALS_DIFFER = text(
    _differing(
        "SELECT * FROM usage_rollup_total WHERE bucket >= :since AND bucket < :until",
        _TOTALS.format(where="bucket >= :since AND bucket < :until"),
        ("bucket", *_TOTAL),
        "bucket NOT IN (SELECT bucket FROM usage_rollup_total_dirty)",
    )
)


async def make_coarser(connection: AsyncConnection) -> int | None:
    """Make some days and totals anew that are marked and over, the oldest first, within the
    caller's transaction; returns how many, None where somebody else makes roll-ups now."""
    if not await take_turn(connection):
        return None
    totals = (await connection.execute(_TAKE_TOTALS, {"most": TOTALS_AT_ONCE})).scalars().all()
    if totals:
        await connection.execute(_CLEAR_TOTALS, {"buckets": totals})
        await connection.execute(_MAKE_TOTALS, {"buckets": totals})
    days = (await connection.execute(_TAKE_DAYS, {"most": DAYS_AT_ONCE})).all()
    if days:
        taken = {"days": [row.day for row in days], "tenants": [row.tenant_id for row in days]}
        await connection.execute(_CLEAR_DAYS, taken)
        await connection.execute(_MAKE_DAYS, taken)
    return len(totals) + len(days)


async def load_coarse_differences(
    connection: AsyncConnection, since: datetime, until: datetime, *, limit: int
) -> Sequence[Difference]:
    """Where days and totals differ from the quarters' roll-ups and are not marked, the first so
    many of each. Whole quarters only; of days those that are whole."""
    period: dict[str, Any] = {"since": since, "until": until, "limit": limit}
    found = [
        _difference(row, row["bucket"], ALL_TENANTS, _TOTAL)
        for row in (await connection.execute(_TOTALS_DIFFER, period)).mappings()
    ]
    first, last = -(-(since - _EPOCH) // DAY), (until - _EPOCH) // DAY
    if first < last:
        period |= {"since": _EPOCH + first * DAY, "until": _EPOCH + last * DAY}
        found += [
            _difference(row, row["day"], row["tenant_id"], ("level", *_DETAIL))
            for row in (await connection.execute(_DAYS_DIFFER, period)).mappings()
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
