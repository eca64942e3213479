"""Usage in sums from its roll-ups: what `usage_records.sum_usage` says, without reading a month of
records.

Whole quarters of an hour come from their roll-ups. Quarters that are marked to be made anew, and
the ends of a period that are no whole quarter, come from the records. One statement, so that what
is made anew meanwhile is counted once.
"""

from datetime import UTC, datetime, timedelta

import msgspec
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from billing.postgres.usage_records import GroupBy, UsageFilter, UsageSum

QUARTER = timedelta(minutes=15)
_FIRST = datetime(1970, 1, 1, tzinfo=UTC)
_LAST = datetime(9999, 1, 1, tzinfo=UTC)
_GROUPS = {
    GroupBy.TENANT: "tenant_id",
    GroupBy.KEY: "api_key_id",
    GroupBy.MODEL: "model",
    GroupBy.CLASS: "class",
    GroupBy.PROVIDER: "provider",
    GroupBy.DAY: "CAST(CAST(at AT TIME ZONE :zone AS date) AS text)",
}
_COUNTS = (
    "requests",
    "prompt_tokens",
    "cached_prompt_tokens",
    "output_tokens",
    "reasoning_tokens",
)
_KEYS = "tenant_id, api_key_id, model, class, provider, billable, final"
_SUMS = ", ".join(
    (
        *(f"CAST(sum({name}) AS bigint) AS {name}" for name in _COUNTS),
        *(
            f"CAST(coalesce(sum({name}) FILTER (WHERE billable), 0) AS bigint) AS billable_{name}"
            for name in ("requests", "prompt_tokens", "output_tokens")
        ),
        (
            "CAST(coalesce(sum(requests) FILTER (WHERE NOT final), 0) AS bigint)"
            " AS provisional_requests"
        ),
    )
)
_OF_TENANT = " AND {table}.tenant_id = :tenant"
_STATEMENT = f"""
WITH marked AS MATERIALIZED (
    SELECT DISTINCT bucket, tenant_id FROM usage_rollup_dirty
    WHERE bucket >= :first AND bucket < :last{{marks_of}}
)
SELECT {{group}} AS "group", {_SUMS} FROM (
    SELECT bucket AS at, {_KEYS}, {", ".join(_COUNTS)} FROM usage_rollup
    WHERE bucket >= :first AND bucket < :last{{rolled_of}}
        AND (bucket, tenant_id) NOT IN (SELECT bucket, tenant_id FROM marked)
    UNION ALL SELECT admitted_at, {_KEYS.replace("tenant_id", "usage_record.tenant_id")}, 1,
        {", ".join(_COUNTS[1:])}
    FROM marked JOIN usage_record ON usage_record.tenant_id = marked.tenant_id
        AND admitted_at >= bucket AND admitted_at < bucket + interval '15 minutes'
    UNION ALL SELECT admitted_at, {_KEYS}, 1, {", ".join(_COUNTS[1:])} FROM usage_record
    WHERE (admitted_at >= :since AND admitted_at < :first{{raw_of}})
    UNION ALL SELECT admitted_at, {_KEYS}, 1, {", ".join(_COUNTS[1:])} FROM usage_record
    WHERE (admitted_at >= :last AND admitted_at < :until{{raw_of}})
) AS usage GROUP BY 1 ORDER BY 1
"""  # noqa: S608 - names of columns, from the lists above


async def sum_rolled_usage(
    connection: AsyncConnection,
    chosen: UsageFilter,
    *,
    group_by: GroupBy,
    time_zone: str = "UTC",
) -> list[UsageSum]:
    """Usage per tenant, key, model, class, provider or day of `time_zone`, ordered by the group.
    A zone's days begin at whole quarters of an hour, as those of every zone now do."""
    since, until = chosen.since or _FIRST, chosen.until or _LAST
    if since >= until:
        return []
    first, last = _floor(since + QUARTER - timedelta(microseconds=1)), _floor(until)
    if first > last:  # within one quarter
        first = last = until
    values: dict[str, object] = {"since": since, "until": until, "first": first, "last": last}
    of = {"marks_of": "usage_rollup_dirty", "rolled_of": "usage_rollup", "raw_of": "usage_record"}
    is_one = chosen.tenant_id is not None
    if is_one:
        values["tenant"] = chosen.tenant_id
    if group_by is GroupBy.DAY:
        values["zone"] = time_zone
    statement = _STATEMENT.format(
        group=_GROUPS[group_by],
        **{name: _OF_TENANT.format(table=table) if is_one else "" for name, table in of.items()},
    )
    rows = (await connection.execute(text(statement), values)).mappings()
    return msgspec.convert([dict(row) for row in rows], list[UsageSum])


def _floor(at: datetime) -> datetime:
    return at - (at - _FIRST) % QUARTER
