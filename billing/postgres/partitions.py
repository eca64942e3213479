"""Monthly partitions of the usage tables."""

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

MONTHS_AHEAD = 3


async def ensure_partitions(connection: AsyncConnection, months_ahead: int = MONTHS_AHEAD) -> int:
    """Have partitions from last month to `months_ahead` from now (UTC), within the caller's
    transaction; returns how many were made. Any number of gateways may call it at once.

    Rows of other months lie in the default partition and move out when their month is made.
    """
    made = await connection.scalar(
        text("SELECT ensure_usage_partitions(:months_ahead)"), {"months_ahead": months_ahead}
    )
    return int(made or 0)
