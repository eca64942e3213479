"""Use by what its price depends on; `usage_sources` says what it is read from."""

from datetime import datetime

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from billing.domain.price_effect import Used
from billing.postgres.usage_sources import COUNTS, Chosen

_BY = "tenant_id, model, provider, class, currency"
_SUMS = ", ".join(f"sum({name})" for name in (*COUNTS[:5], "cost_pico"))


async def load_used(db: AsyncConnection, since: datetime, until: datetime) -> list[Used]:
    """What tenants are to pay for."""
    counted, values = Chosen(since=since, until=until).counted((*_BY.split(", "), "billable"))
    statement = f"""{counted} SELECT {_BY}, {_SUMS} FROM counted
        WHERE billable AND currency IS NOT NULL GROUP BY {_BY}"""  # noqa: S608 - names of columns, from above
    rows = await db.execute(text(statement), values)
    return [Used(*row[:5], *map(int, row[5:])) for row in rows]
