"""Roll-ups of usage by quarters of an hour: made anew, whole, of whatever is marked as changed."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import RowMapping, text
from sqlalchemy.ext.asyncio import AsyncConnection

from billing.domain.reconciliation.rollups import Difference

QUARTERS_AT_ONCE = 50
"""Quarters of tenants in one transaction."""
_TURN = 0x57454952_0012
"""Advisory lock: one gateway at a time makes roll-ups, of whatever kind."""
_BY = (
    "tenant_id", "api_key_id", "model", "class", "provider", "currency", "price_id", "billable",
    "final",
)  # fmt: skip
COUNTS = {
    "requests": "count(*)",
    "prompt_tokens": "sum(prompt_tokens)",
    "cached_prompt_tokens": "sum(cached_prompt_tokens)",
    "output_tokens": "sum(output_tokens)",
    "reasoning_tokens": "sum(reasoning_tokens)",
    "sequences": "sum(sequences)",
    "cost_pico": "coalesce(sum(cost_pico), 0)",
    "list_cost_pico": "coalesce(sum(list_cost_pico), 0)",
    "unpriced_requests": "count(*) FILTER (WHERE cost_pico IS NULL)",
}
"""What a roll-up counts, and how it is counted of records."""
_KEY = ", ".join(("bucket", *_BY))
_SUMS = ", ".join(f"{how} AS {name}" for name, how in COUNTS.items())
_RAW = (
    f"SELECT usage_bucket(admitted_at) AS bucket, {', '.join(_BY)}, {_SUMS} FROM usage_record"  # noqa: S608 - names of columns, from the lists above
    " WHERE {where} GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10"
)
_TAKE_MARKS = """
WITH oldest AS (
    SELECT DISTINCT bucket, tenant_id FROM (
        SELECT bucket, tenant_id FROM usage_rollup_dirty
        WHERE id <= coalesce(CAST(:up_to AS bigint), id) ORDER BY id LIMIT :marks
    ) AS first LIMIT :quarters
)
DELETE FROM usage_rollup_dirty AS mark USING oldest
WHERE mark.bucket = oldest.bucket AND mark.tenant_id = oldest.tenant_id
RETURNING mark.bucket, mark.tenant_id
"""
_MARKS_READ = 5_000
_CLEAR = text("DELETE FROM usage_rollup WHERE tenant_id = :tenant AND bucket = :bucket")
_MAKE = text(
    f"INSERT INTO usage_rollup ({_KEY}, {', '.join(COUNTS)}) "
    + _RAW.format(
        where="tenant_id = :tenant AND admitted_at >= :bucket"
        " AND admitted_at < CAST(:bucket AS timestamptz) + interval '15 minutes'"
    )
)
_DIFFERENCES = text(
    f"WITH raw AS ({_RAW.format(where='admitted_at >= :since AND admitted_at < :until')}),"  # noqa: S608 - as above
    " rolled AS (SELECT * FROM usage_rollup WHERE bucket >= :since AND bucket < :until)"
    f" SELECT {', '.join(f'coalesce(raw.{name}, rolled.{name}) AS {name}' for name in ('bucket', *_BY))}, "  # noqa: E501
    + ", ".join(
        f"coalesce(rolled.{name}, 0) AS rolled_{name}, coalesce(raw.{name}, 0) AS raw_{name}"
        for name in COUNTS
    )
    + " FROM raw FULL JOIN rolled ON "
    + " AND ".join(
        f"raw.{name} IS NOT DISTINCT FROM rolled.{name}"
        if name in ("currency", "price_id")
        else f"raw.{name} = rolled.{name}"
        for name in ("bucket", *_BY)
    )
    + " WHERE "
    + " OR ".join(f"raw.{name} IS DISTINCT FROM rolled.{name}" for name in COUNTS)
    + " ORDER BY 1, 2, 3, 4 LIMIT :limit"
)


async def take_turn(connection: AsyncConnection) -> bool:
    """Whether nobody else makes roll-ups until the caller's transaction ends."""
    taken: bool = await connection.scalar(
        text("SELECT pg_try_advisory_xact_lock(:turn)"), {"turn": _TURN}
    )
    return taken


async def newest_mark(connection: AsyncConnection) -> int | None:
    """The highest number of a mark that is seen now, None where there is none."""
    newest: int | None = await connection.scalar(text("SELECT max(id) FROM usage_rollup_dirty"))
    return newest


async def roll_up(connection: AsyncConnection, *, up_to: int | None = None) -> int | None:
    """Make some quarters anew that are marked, the oldest marks first, within the caller's
    transaction; returns how many, None where somebody else does it now. With `up_to` marks of
    higher numbers cause none, so that whoever repeats it comes to an end whatever is written
    meanwhile; those of a quarter that is made are taken with it.

    The marks are taken before the records are read, each in a statement of its own: a record that
    is written meanwhile leaves a mark that stays.
    """
    if not await take_turn(connection):
        return None
    taken = await connection.execute(
        text(_TAKE_MARKS),
        {"marks": _MARKS_READ, "quarters": QUARTERS_AT_ONCE, "up_to": up_to},
    )
    quarters = sorted({(row.bucket, row.tenant_id) for row in taken})
    for bucket, tenant in quarters:
        chosen = {"bucket": bucket, "tenant": tenant}
        await connection.execute(_CLEAR, chosen)
        await connection.execute(_MAKE, chosen)
    return len(quarters)


async def count_groups(connection: AsyncConnection, since: datetime, until: datetime) -> int:
    """How many groups the roll-ups of a period have."""
    found = await connection.scalar(
        text("SELECT count(*) FROM usage_rollup WHERE bucket >= :since AND bucket < :until"),
        {"since": since, "until": until},
    )
    return found or 0


async def load_marks(
    connection: AsyncConnection, since: datetime, until: datetime
) -> frozenset[tuple[datetime, str]]:
    """Quarters of a period, with their tenants, that are to be made anew."""
    rows = await connection.execute(
        text(
            "SELECT DISTINCT bucket, tenant_id FROM usage_rollup_dirty"
            " WHERE bucket >= :since AND bucket < :until"
        ),
        {"since": since, "until": until},
    )
    return frozenset((row.bucket, row.tenant_id) for row in rows)


async def load_differences(
    connection: AsyncConnection, since: datetime, until: datetime, *, limit: int
) -> Sequence[Difference]:
    """Where roll-ups and records differ, marked or not, the first so many. Whole quarters only."""
    found = await connection.execute(_DIFFERENCES, {"since": since, "until": until, "limit": limit})
    return [_difference(row) for row in found.mappings()]


def _difference(row: RowMapping) -> Difference:
    return Difference(
        row["bucket"],
        row["tenant_id"],
        " ".join(f"{name}={row[name]}" for name in _BY[1:]),
        {name: (int(row[f"rolled_{name}"]), int(row[f"raw_{name}"])) for name in COUNTS},
    )
