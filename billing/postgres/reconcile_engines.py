"""What engines have counted and what was recorded there, as REC-3 compares it."""

from collections.abc import AsyncIterator, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from billing.domain.reconciliation.ledgers import Ran

LONGEST = timedelta(hours=6)
"""No request runs for longer: what ends in a period was admitted so long before it at most."""
AFTER_LOSS = timedelta(minutes=5)
"""So long after its gateway was last seen an engine may go on with a request that is lost."""
PAGE = 1_000
"""Rows that are read at once: few enough that whoever serves beside it is not held up."""
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
    AND request_id >= CAST(:first_id AS uuid) AND request_id < CAST(:last_id AS uuid)
"""  # noqa: S608 - constants
_ENDED_IN = f"SELECT * FROM ({_RAN}) AS ran WHERE ended_ms >= :first_ms"  # noqa: S608 - constants
# Not the same with fewer columns: whose attempt it is takes a sort of all that there are.
_STAYS = f"""
SELECT worker_id, {_MS.format("started_at")}, {_MS.format("ended_at")}, prompt_tokens,
    output_tokens, coalesce(usage_source = 'engine_final', false)
FROM usage_attempt
WHERE admitted_at >= :admitted AND admitted_at < :until AND provider = 'self'
    AND request_id >= CAST(:first_id AS uuid) AND request_id < CAST(:last_id AS uuid)
    AND ended_at >= :since
"""  # noqa: S608 - constants
_HOSTED = """
SELECT count(*), count(*) FILTER (WHERE provider_cost_pico IS NULL),
    count(*) FILTER (WHERE provider_request_id IS NULL)
FROM usage_attempt
WHERE admitted_at >= :since AND admitted_at < :until AND provider <> 'self'
"""
_LOST = """
SELECT request_id FROM usage_record
WHERE admitted_at >= :admitted AND admitted_at < :until AND outcome = 'gateway_lost'
    AND ended_at >= :ended
"""


class Stay(NamedTuple):
    """An attempt on a worker of ours, without whose it is."""

    worker_id: str
    started_at_ms: int
    ended_at_ms: int
    prompt_tokens: int
    output_tokens: int
    is_exact: bool
    """Whether its counts are the engine's own last word."""


async def read_samples(
    db: AsyncConnection, since: datetime, until: datetime
) -> AsyncIterator[Sequence[Row[Any]]]:
    """Fields of `Sample`, each worker's in order, a page at a time; a worker that tells no tokens
    has none."""
    found = await db.stream(text(_SAMPLES), {"since": since, "until": until})
    async for page in found.partitions(PAGE):
        yield page


async def read_stays(
    db: AsyncConnection, since: datetime, until: datetime
) -> AsyncIterator[Sequence[Row[Any]]]:
    """Fields of `Stay` of every attempt on a worker of ours that ended at or after `since`, of
    requests admitted before `until`, a page at a time."""
    found = await db.stream(text(_STAYS), {**_admitted(since, until), "since": since})
    async for page in found.partitions(PAGE):
        yield page


async def load_ran(db: AsyncConnection, since: datetime, until: datetime) -> list[Ran]:
    """The same attempts, whole and each with its request."""
    chosen = {**_admitted(since, until), "first_ms": int(since.timestamp() * 1000)}
    return [Ran(*row) for row in await db.execute(text(_ENDED_IN), chosen)]


async def load_lost(db: AsyncConnection, since: datetime, until: datetime) -> frozenset[UUID]:
    """Requests whose gateway died and that an engine may have run in a period."""
    chosen = {"admitted": since - LONGEST, "until": until, "ended": since - AFTER_LOSS}
    return frozenset((await db.execute(text(_LOST), chosen)).scalars())


async def count_hosted(
    db: AsyncConnection, since: datetime, until: datetime
) -> tuple[int, int, int]:
    """Attempts at hosted providers; how many of them cost nobody knows what; how many have no id
    that the provider's own account could be matched by."""
    row = (await db.execute(text(_HOSTED), {"since": since, "until": until})).one()
    return row[0], row[1], row[2]


def _admitted(since: datetime, until: datetime) -> dict[str, object]:
    """Requests that may have run in a period, also by their ids, which carry the time."""
    first = since - LONGEST
    return {
        "admitted": first,
        "until": until,
        "first_id": _id_at(first),
        "last_id": _id_at(until + timedelta(milliseconds=1)),
    }


def _id_at(at: datetime) -> UUID:
    return UUID(int=max(0, int(at.timestamp() * 1000)) << 80)
