"""Use by what its price depends on, from the roll-ups."""

from datetime import datetime

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from billing.domain.price_effect import Used

_USED = text(
    """
SELECT tenant_id, model, provider, class, currency, sum(requests), sum(prompt_tokens),
    sum(cached_prompt_tokens), sum(output_tokens), sum(reasoning_tokens), sum(cost_pico)
FROM usage_rollup
WHERE bucket >= :since AND bucket < :until AND billable AND currency IS NOT NULL
GROUP BY 1, 2, 3, 4, 5
"""
)


async def load_used(db: AsyncConnection, since: datetime, until: datetime) -> list[Used]:
    """What tenants are to pay for, of whole quarters of an hour."""
    rows = await db.execute(_USED, {"since": since, "until": until})
    return [Used(*row[:5], *map(int, row[5:])) for row in rows]
