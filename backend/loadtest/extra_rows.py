"""Rows that no request of the run asked for: a request that was billed twice under another id, or
one that nobody sent."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from datetime import datetime

import asyncpg

from backend.loadtest.run import Outcome
from backend.loadtest.tenants import PREFIX, tenant_id_of

QUERY = """
SELECT request_id::text, tenant_id, class
FROM usage_records
WHERE admitted_at BETWEEN $1 AND $2 AND starts_with(tenant_id, $3)
"""
Between = tuple[datetime, datetime]
"""When a run began and ended."""
Row = Mapping[str, object]


async def other_rows(
    connection: asyncpg.Connection, between: Between, ids: Set[str]
) -> Sequence[Row]:
    """Rows of load tests' tenants that were admitted meanwhile and have none of these ids."""
    began, ended = between
    # Ids, and so admissions, are of whole milliseconds.
    began = began.replace(microsecond=began.microsecond // 1000 * 1000)
    found: list[asyncpg.Record] = await connection.fetch(QUERY, began, ended, PREFIX)
    return [dict(row) for row in found if row["request_id"] not in ids]


def unaccounted(rows: Iterable[Row], outcomes: Iterable[Outcome]) -> list[str]:
    """A sentence for each tenant and class with more of them than it has requests whose id the
    client never learnt, which may have been admitted all the same."""
    without_id = Counter(
        (tenant_id_of(outcome.planned.tenant), str(outcome.planned.traffic_class))
        for outcome in outcomes
        if outcome.request_id is None
    )
    by_key: dict[tuple[object, object], list[str]] = {}
    for row in rows:
        by_key.setdefault((row["tenant_id"], row["class"]), []).append(str(row["request_id"]))
    sentences = []
    for (tenant, of_class), ids in sorted(by_key.items(), key=str):
        count = len(ids) - without_id[str(tenant), str(of_class)]
        if count > 0:
            sentences.append(
                f"{tenant}, {of_class}: {count} row{'s' if count > 1 else ''} that no request of "
                f"this run accounts for, such as {min(ids)} (or another load test ran on this "
                "Weir at the same time)"
            )
    return sentences
