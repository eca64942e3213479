"""Monthly partitions of the usage tables."""

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

MONTHS_AHEAD = 3
STRAY_ROWS_MAX = 10_000


async def ensure_partitions(connection: AsyncConnection, months_ahead: int = MONTHS_AHEAD) -> int:
    """Have partitions from last month to `months_ahead` from now (UTC), within the caller's
    transaction; returns how many were made. Any number of gateways may call it at once.

    Rows of other months lie in the default partition and move out when their month is made.
    """
    made = await connection.scalar(
        text("SELECT ensure_usage_partitions(:months_ahead)"), {"months_ahead": months_ahead}
    )
    return int(made or 0)


async def count_stray(connection: AsyncConnection) -> int:
    """Records in the default partition, counted up to STRAY_ROWS_MAX: their month had no partition
    of its own when they came. They are billed like any other."""
    counted = await connection.scalar(
        text("SELECT count(*) FROM (SELECT 1 FROM usage_record_default LIMIT :most) AS stray"),
        {"most": STRAY_ROWS_MAX},
    )
    return int(counted or 0)
