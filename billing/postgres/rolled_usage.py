"""Usage in sums from its roll-ups: what `usage_records.sum_usage` says, without reading a month of
records. `usage_sources` says what is read."""

from datetime import UTC, datetime

import msgspec
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from billing.postgres.usage_records import GroupBy, UsageFilter, UsageSum
from billing.postgres.usage_sources import COUNTS, DAY, QUARTER, Chosen

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
_SUMS = ", ".join(
    (
        *(f"CAST(sum({name}) AS bigint) AS {name}" for name in COUNTS[:5]),
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


async def sum_rolled_usage(
    connection: AsyncConnection,
    chosen: UsageFilter,
    *,
    group_by: GroupBy,
    time_zone: str = "UTC",
) -> list[UsageSum]:
    """Usage per tenant, key, model, class, provider or day of `time_zone`, ordered by the group.
    A zone's days begin at whole quarters of an hour, as those of every zone now do."""
    period = Chosen(
        since=chosen.since or _FIRST,
        until=chosen.until or _LAST,
        tenants=None if chosen.tenant_id is None else [chosen.tenant_id],
    )
    if period.since >= period.until:
        return []
    by_day = group_by is GroupBy.DAY
    counted, values = period.counted(
        () if by_day else (_GROUPS[group_by],),
        width=(DAY if time_zone == "UTC" else QUARTER) if by_day else None,
    )
    if by_day:
        values["zone"] = time_zone
    statement = f'{counted} SELECT {_GROUPS[group_by]} AS "group", {_SUMS} FROM counted GROUP BY 1 ORDER BY 1'  # noqa: S608, E501 - names of columns, from above
    rows = (await connection.execute(text(statement), values)).mappings()
    return msgspec.convert([dict(row) for row in rows], list[UsageSum])
