"""Provisional rows: what is recorded of requests whose gateway is gone, until its journal says it
itself or nobody waits for that any longer."""

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from billing.domain.usage_record import UsageRecord
from billing.postgres.dead_letters import bury
from billing.postgres.shipments import insert_isolating
from billing.postgres.usage_insert import JournaledRecord

FINALISED_AT_ONCE = 1_000
STRUCK_AT_ONCE = 10_000

_OF = """
FROM usage_record AS row, unnest(CAST(:ids AS uuid[]), CAST(:times AS bigint[]))
    AS sent (request_id, at_ms)
WHERE row.request_id = sent.request_id AND row.admitted_at = unix_ms_time(sent.at_ms)
    AND NOT row.final
"""
# Rows are locked in the order of their ids, as every writer does.
_LOCK = f"SELECT row.request_id, row.admitted_at {_OF} ORDER BY row.request_id FOR UPDATE OF row"
_LOCK_FLAGGED = f"""
SELECT row.request_id {_OF} AND :flag = ANY (row.usage_flags)
ORDER BY row.request_id FOR UPDATE OF row
"""
_REMOVE = """
DELETE FROM usage_record AS row
USING unnest(CAST(:ids AS uuid[]), CAST(:times AS bigint[])) AS sent (request_id, at_ms)
WHERE row.request_id = sent.request_id AND row.admitted_at = unix_ms_time(sent.at_ms)
"""
_LIST = f"""
INSERT INTO usage_provisional (request_id, admitted_at, gateway_id)
SELECT row.request_id, row.admitted_at, CAST(:gateway_id AS text) {_OF} ORDER BY row.request_id
ON CONFLICT DO NOTHING
"""
_DUE = """
DELETE FROM usage_provisional
WHERE (request_id, admitted_at) IN (
    SELECT request_id, admitted_at FROM usage_provisional
    WHERE made_at <= now() - CAST(:age AS interval)
    ORDER BY request_id LIMIT :most FOR UPDATE SKIP LOCKED)
RETURNING request_id, CAST(extract(epoch FROM admitted_at) * 1000 AS bigint)
"""
_FINALISE = """
UPDATE usage_record AS row SET final = true, recorded_at = now()
FROM unnest(CAST(:ids AS uuid[]), CAST(:times AS bigint[])) AS sent (request_id, at_ms)
WHERE row.request_id = sent.request_id AND row.admitted_at = unix_ms_time(sent.at_ms)
    AND NOT row.final
"""
_STRIKE = """
DELETE FROM usage_provisional
WHERE (request_id, admitted_at) IN (
    SELECT listed.request_id, listed.admitted_at FROM usage_provisional AS listed
    JOIN usage_record AS row USING (request_id, admitted_at)
    WHERE row.final ORDER BY listed.request_id LIMIT :most FOR UPDATE OF listed SKIP LOCKED)
"""
_COUNT = """
SELECT count(*) FROM usage_provisional AS listed
WHERE listed.gateway_id = :gateway_id AND NOT EXISTS (
    SELECT 1 FROM usage_record AS row
    WHERE row.request_id = listed.request_id AND row.admitted_at = listed.admitted_at
        AND row.final)
"""


async def write_provisional(
    engine: AsyncEngine,
    gateway_id: str,
    records: Sequence[UsageRecord],
    *,
    ends: Sequence[UUID],
    unknown_end: str,
) -> int:
    """Write rows of a gateway that is gone, `final` false in each; returns how many were not there
    before. A row that is there stays, whoever wrote it: but where one of `ends` tells how its
    request ended and the row, flagged `unknown_end`, does not, it takes its place. What Postgres
    refuses is a dead letter. Repeating it changes nothing. Raises what the driver raises.
    """
    known = frozenset(ends)
    better = [record for record in records if record.request_id in known]
    if better:
        async with engine.begin() as connection:
            await _replace(connection, gateway_id, better, unknown_end)
    async with engine.begin() as connection:
        return await _write(connection, gateway_id, records)


async def finalise(engine: AsyncEngine, *, age_ms: int) -> int:
    """Make rows final that were provisional for so long, some at once; returns how many were
    looked at: fewer than FINALISED_AT_ONCE where none is left. Any number may do it at once."""
    due_for = {"age": timedelta(milliseconds=age_ms), "most": FINALISED_AT_ONCE}
    async with engine.begin() as connection:
        due = sorted(tuple(row) for row in await connection.execute(text(_DUE), due_for))
        if due:
            sent = {"ids": [row[0] for row in due], "times": [row[1] for row in due]}
            await connection.execute(text(_LOCK), sent)
            await connection.execute(text(_FINALISE), sent)
    return len(due)


async def strike_replaced(engine: AsyncEngine) -> int:
    """Take rows off the list that are final since their own journal told of them, some at once;
    returns how many: fewer than STRUCK_AT_ONCE where none is left."""
    async with engine.begin() as connection:
        return (await connection.execute(text(_STRIKE), {"most": STRUCK_AT_ONCE})).rowcount


async def count_provisional(engine: AsyncEngine, gateway_id: str) -> int:
    """How many rows of a gateway are provisional still: none of those that its journal replaced."""
    async with engine.connect() as connection:
        return await connection.scalar(text(_COUNT), {"gateway_id": gateway_id}) or 0


async def _replace(
    connection: AsyncConnection, gateway_id: str, records: Sequence[UsageRecord], flag: str
) -> None:
    found = await connection.execute(text(_LOCK_FLAGGED), {**_sent(records), "flag": flag})
    poorer = set(found.scalars())
    if poorer:
        chosen = [record for record in records if record.request_id in poorer]
        await connection.execute(text(_REMOVE), _sent(chosen))
        await _write(connection, gateway_id, chosen)


async def _write(
    connection: AsyncConnection, gateway_id: str, records: Sequence[UsageRecord]
) -> int:
    rows = [JournaledRecord(record, gateway_id) for record in records]
    refused = await insert_isolating(connection, rows)
    await bury(connection, refused)
    of_it = {**_sent(records), "gateway_id": gateway_id}
    return (await connection.execute(text(_LIST), of_it)).rowcount


def _sent(records: Sequence[UsageRecord]) -> dict[str, object]:
    return {
        "ids": [record.request_id for record in records],
        "times": [record.admitted_at_ms for record in records],
    }
