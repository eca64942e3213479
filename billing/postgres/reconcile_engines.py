"""What engines have counted and what was recorded there, as REC-3 compares it."""

from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from billing.domain.reconciliation.engines import Sample
from billing.domain.reconciliation.ledgers import Ran

LONGEST = timedelta(hours=6)
"""No request runs for longer: what ends in a period was admitted so long before it at most."""
_MS = "CAST(floor(extract(epoch FROM {}) * 1000) AS bigint)"
# A process that has counted nothing yet tells no count; one that never tells any is no witness.
_SAMPLES = f"""
SELECT worker_id, life, {_MS.format("asked_at")}, {_MS.format("taken_at")},
    coalesce(prompt_tokens, 0), coalesce(output_tokens, 0)
FROM engine_sample AS sample
WHERE taken_at >= :since AND taken_at < :until AND EXISTS (
    SELECT 1 FROM engine_sample AS other
    WHERE other.worker_id = sample.worker_id AND other.life = sample.life
        AND other.prompt_tokens IS NOT NULL AND other.output_tokens IS NOT NULL
        AND other.taken_at >= :since AND other.taken_at < :until
)
ORDER BY worker_id, taken_at
"""  # noqa: S608 - constants
_RAN = f"""
SELECT request_id, choice,
    row_number() OVER (PARTITION BY request_id, choice ORDER BY attempt) AS number,
    worker_id, {_MS.format("started_at")}, {_MS.format("ended_at")} AS ended_ms, prompt_tokens,
    output_tokens, usage_source
FROM usage_attempt
WHERE admitted_at >= :admitted AND admitted_at < :until AND provider = 'self'
"""  # noqa: S608 - constants
_ENDED_IN = f"SELECT * FROM ({_RAN}) AS ran WHERE ended_ms >= :first_ms"  # noqa: S608 - constants
_HOSTED = """
SELECT count(*), count(*) FILTER (WHERE provider_cost_pico IS NULL),
    count(*) FILTER (WHERE provider_request_id IS NULL)
FROM usage_attempt
WHERE admitted_at >= :since AND admitted_at < :until AND provider <> 'self'
"""
_LOST = """
SELECT request_id FROM usage_record
WHERE admitted_at >= :admitted AND admitted_at < :until AND outcome = 'gateway_lost'
"""


async def load_samples(db: AsyncConnection, since: datetime, until: datetime) -> list[Sample]:
    """Every worker's, in order; one that tells no tokens is none."""
    rows = await db.execute(text(_SAMPLES), {"since": since, "until": until})
    return [Sample(*row) for row in rows]


async def load_ran(db: AsyncConnection, since: datetime, until: datetime) -> list[Ran]:
    """Attempts on workers of ours that ended at or after `since`, of requests admitted before
    `until`."""
    chosen = {
        "admitted": since - LONGEST,
        "until": until,
        "first_ms": int(since.timestamp() * 1000),
    }
    return [Ran(*row) for row in await db.execute(text(_ENDED_IN), chosen)]


async def load_lost(db: AsyncConnection, since: datetime, until: datetime) -> frozenset[UUID]:
    """Requests that may have run in a period and whose gateway died."""
    chosen = {"admitted": since - LONGEST, "until": until}
    return frozenset((await db.execute(text(_LOST), chosen)).scalars())


async def count_hosted(
    db: AsyncConnection, since: datetime, until: datetime
) -> tuple[int, int, int]:
    """Attempts at hosted providers; how many of them cost nobody knows what; how many have no id
    that the provider's own account could be matched by."""
    row = (await db.execute(text(_HOSTED), {"since": since, "until": until})).one()
    return row[0], row[1], row[2]
