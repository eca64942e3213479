"""Records with their attempts as REC-6 judges them, and what a replay of records would write."""

from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from billing.domain.reconciliation.attempts import Judged, Try
from billing.domain.reconciliation.replay import Altered, Written
from billing.postgres.reconcile_rows import find_altered
from billing.postgres.shipments import insert_isolating
from billing.postgres.usage_insert import JournaledRecord

PAGE = 200
"""Records that are read at once: few enough that whoever serves beside it is not held up."""
_RECORDS = """
SELECT request_id, tenant_id, outcome, prompt_tokens, cached_prompt_tokens, output_tokens,
    usage_source, usage_flags, attempts, billable, billing_policy
FROM usage_record
WHERE admitted_at >= :since AND admitted_at < :until
    AND (admitted_at, request_id) > (uuid_v7_time(CAST(:after AS uuid)), CAST(:after AS uuid))
ORDER BY admitted_at, request_id LIMIT :page
"""
_ATTEMPTS = """
SELECT request_id, choice, attempt, outcome, prompt_tokens, output_tokens, cached_prompt_tokens
FROM usage_attempt
WHERE request_id = ANY(CAST(:ids AS uuid[]))
    AND admitted_at BETWEEN uuid_v7_time(CAST(:first AS uuid)) AND uuid_v7_time(CAST(:last AS uuid))
"""
# What a transaction writes carries the time at which that began, to the microsecond.
_WRITTEN_NOW = """
SELECT request_id FROM usage_record
WHERE request_id = ANY(CAST(:ids AS uuid[])) AND admitted_at = uuid_v7_time(request_id)
    AND recorded_at = now()
"""
_FIRST = UUID(int=7 << 76)


async def read_judged(
    db: AsyncConnection, since: datetime, until: datetime
) -> AsyncIterator[list[Judged]]:
    """All records that were admitted in a period, a page at a time, with their attempts."""
    after = _FIRST
    while True:
        chosen = {"since": since, "until": until, "after": after, "page": PAGE}
        rows = (await db.execute(text(_RECORDS), chosen)).all()
        if not rows:
            return
        ids = [row.request_id for row in rows]
        tries: dict[UUID, list[Try]] = defaultdict(list)
        of_page = {"ids": ids, "first": ids[0], "last": ids[-1]}
        for row in await db.execute(text(_ATTEMPTS), of_page):
            tries[row.request_id].append(Try(*row[1:]))
        yield [
            Judged(**row, tries=tuple(tries[row["request_id"]]))
            for row in (each._asdict() for each in rows)
        ]
        after = ids[-1]


async def replay(engine: AsyncEngine, rows: Sequence[JournaledRecord]) -> list[Written | Altered]:
    """Insert these as a shipment does, say which of them were written, and take it all back; and
    what of their rows was not what they say before. What Postgres refuses is passed over: it is a
    dead letter."""
    async with engine.connect() as db:
        begun = await db.begin()
        try:
            altered = await find_altered(db, rows)
            await insert_isolating(db, rows)
            ids = [row.record.request_id for row in rows]
            written = set((await db.execute(text(_WRITTEN_NOW), {"ids": ids})).scalars())
        finally:
            await begun.rollback()
    return [
        *(
            Written(
                row.record.request_id,
                row.gateway_id,
                row.record.prompt_tokens + row.record.output_tokens,
            )
            for row in rows
            if row.record.request_id in written
        ),
        *altered,
    ]
