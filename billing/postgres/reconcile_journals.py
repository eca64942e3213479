"""What Postgres holds of journals, as REC-1 and REC-2 compare it."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

import msgspec
from sqlalchemy import bindparam, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.types import Uuid

from billing.domain.reconciliation.journals import Boot, Letter, Lost, NumberGap
from billing.domain.usage_record import UsageRecord
from billing.postgres.usage_late import REAPED, SENT_DIRECTLY

FINDINGS_READ = 1_000
"""Of each kind so many are read; sizes that are summed up count all."""

_WATERMARKS = """
SELECT gateway_id, boot, seq, admitted_count, ended_count, missing_count FROM journal_watermark
"""
_SEEN = "SELECT gateway_id, boot, durable_seq, open_count, seen_at FROM gateway_seen"
_ROWS = """
SELECT gateway_id, boot, count(*) AS rows, max(seq) AS last_seq FROM usage_record
WHERE boot IS NOT NULL GROUP BY gateway_id, boot
"""
# A row is settled once its journal has told its end: that one is known, and excuses no other.
_WITHOUT_PLACE = """
SELECT row.gateway_id,
    count(*) FILTER (WHERE :reaped = ANY (row.usage_flags) AND late.request_id IS NULL),
    count(*) FILTER (WHERE :reaped <> ALL (row.usage_flags) OR late.request_id IS NOT NULL),
    count(*) FILTER (WHERE NOT row.usage_flags && ARRAY[:reaped, :directly])
FROM usage_record AS row LEFT JOIN usage_late AS late
    ON late.request_id = row.request_id AND late.admitted_at = row.admitted_at
WHERE row.boot IS NULL AND late.boot IS NULL GROUP BY row.gateway_id
"""
_LETTERS_BY_BOOT = """
SELECT gateway_id, split_part(source, ':', 1)::bigint AS boot, count(*) AS letters
FROM usage_dead_letter WHERE resolved_at IS NULL AND source ~ '^[0-9]+:[0-9]+$' GROUP BY 1, 2
"""
_ILLEGIBLE_BY_BOOT = """
SELECT gateway_id, split_part(source, ':', 1)::bigint AS boot, count(*) AS letters
FROM usage_dead_letter WHERE request_id IS NULL AND source ~ '^[0-9]+:[0-9]+$' GROUP BY 1, 2
"""
# A letter that is resolved has its row, or is kept as one that came late, under its own place.
_RESOLVED_BY_BOOT = """
SELECT gateway_id, boot, count(*) AS letters FROM (
    SELECT gateway_id, split_part(source, ':', 1)::bigint AS boot,
        split_part(source, ':', 2)::bigint AS seq
    FROM usage_dead_letter WHERE resolved_at IS NOT NULL AND source ~ '^[0-9]+:[0-9]+$'
) AS letter
WHERE NOT EXISTS (
    SELECT 1 FROM usage_record AS row
    WHERE row.gateway_id = letter.gateway_id AND row.boot = letter.boot AND row.seq = letter.seq
) AND NOT EXISTS (
    SELECT 1 FROM usage_late AS late
    WHERE late.gateway_id = letter.gateway_id AND late.boot = letter.boot AND late.seq = letter.seq
) GROUP BY 1, 2
"""
_LATE = """
SELECT late.gateway_id, late.boot, count(*) AS ends, count(row.boot) AS told_twice
FROM usage_late AS late LEFT JOIN usage_record AS row
    ON row.request_id = late.request_id AND row.admitted_at = late.admitted_at
        AND row.gateway_id = late.gateway_id
WHERE late.boot IS NOT NULL GROUP BY late.gateway_id, late.boot
"""
_LATE_TOKENS = """
SELECT coalesce(sum(abs(prompt_tokens) + abs(output_tokens)), 0) FROM usage_late
WHERE came_at >= :since
"""
_GAPS = """
SELECT gateway_id, boot, first_seq, last_seq FROM journal_gap
WHERE found_at >= :since ORDER BY gateway_id, boot, first_seq LIMIT :limit
"""
_LETTERS = """
SELECT id, gateway_id, source, request_id, reason, payload FROM usage_dead_letter
WHERE resolved_at IS NULL ORDER BY id LIMIT :limit
"""
# An attempt is written with its record, in one transaction: alone it says that a record was there.
_ORPHANED_ATTEMPTS = """
SELECT request_id, min(worker_id), sum(prompt_tokens + output_tokens) FROM usage_attempt AS attempt
WHERE admitted_at >= :since AND admitted_at < :until AND NOT EXISTS (
    SELECT 1 FROM usage_record AS record
    WHERE record.request_id = attempt.request_id AND record.admitted_at = attempt.admitted_at
) GROUP BY request_id ORDER BY request_id LIMIT :limit
"""
_KNOWN = text(
    "SELECT request_id FROM usage_record"
    " WHERE request_id = ANY(:ids) AND admitted_at = uuid_v7_time(request_id)"
    " UNION SELECT request_id FROM usage_dead_letter WHERE request_id = ANY(:ids)"
    " UNION SELECT request_id FROM usage_late WHERE request_id = ANY(:ids)"
).bindparams(bindparam("ids", type_=ARRAY(Uuid)))


@dataclass(frozen=True)
class StoredJournal:
    """A gateway's journal as Postgres knows it. `seen_at` is when it was last heard of, None where
    nobody wrote that down."""

    gateway_id: str
    boots: Sequence[Boot]
    seen_at: datetime | None
    told_by_others: int
    """Rows that another gateway wrote, and of which it has given no account of its own."""
    without_place: int
    """Rows whose account it gave by another way than its journal, which has not told their end."""
    of_older: int
    """Those of them that a release sent which kept nothing where the journal told their end too."""


async def load_journals(db: AsyncConnection, *, count_rows: bool) -> list[StoredJournal]:
    """Every journal there ever was. `count_rows` reads all usage records."""
    boots = _Boots()
    seen: dict[str, datetime] = {}
    for row in await db.execute(text(_WATERMARKS)):
        boots.change(
            row[0], row[1], seq=row[2], admitted=row[3], ended=row[4], missing=row[5],
            rows=0 if count_rows else None,
        )  # fmt: skip
    for row in await db.execute(text(_SEEN)):
        boots.change(row[0], row[1], durable_seq=row[2], open_count=row[3])
        seen[row[0]] = max(row[4], seen.get(row[0], row[4]))
    for row in await db.execute(text(_ROWS)) if count_rows else ():
        boots.change(row[0], row[1], rows=row[2], last_row_seq=row[3])
    for row in await db.execute(text(_LETTERS_BY_BOOT)):
        boots.change(row[0], row[1], letters=row[2])
    for row in await db.execute(text(_RESOLVED_BY_BOOT)) if count_rows else ():
        boots.change(row[0], row[1], resolved=row[2])
    for row in await db.execute(text(_ILLEGIBLE_BY_BOOT)):
        boots.change(row[0], row[1], illegible=row[2])
    for row in await db.execute(text(_LATE)):
        boots.change(row[0], row[1], late=row[2], told_twice=row[3])
    others: dict[str, tuple[int, int, int]] = {}
    flags = {"reaped": REAPED, "directly": SENT_DIRECTLY}
    for name, *counts in await db.execute(text(_WITHOUT_PLACE), flags):
        others[name] = (counts[0], counts[1], counts[2])
    by_gateway = boots.by_gateway()
    return [
        StoredJournal(name, by_gateway.get(name, ()), seen.get(name), *others.get(name, (0, 0, 0)))
        for name in sorted({*by_gateway, *others})
    ]


class _Boots:
    """What is known of each boot, brought together from several tables."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], Boot] = {}

    def change(self, gateway_id: str, boot: int, **values: int | None) -> None:
        known = self._known.get((gateway_id, boot), Boot(boot=boot))
        self._known[gateway_id, boot] = replace(known, **values)  # type: ignore[arg-type]

    def by_gateway(self) -> dict[str, list[Boot]]:
        found: dict[str, list[Boot]] = defaultdict(list)
        for (gateway_id, _), boot in sorted(self._known.items()):
            found[gateway_id].append(boot)
        return found


async def load_gaps(db: AsyncConnection, since: datetime) -> list[NumberGap]:
    """Numbers that disks have lost, of what was found at or after `since`."""
    rows = await db.execute(text(_GAPS), {"since": since, "limit": FINDINGS_READ})
    return [NumberGap(*row) for row in rows]


async def load_letters(db: AsyncConnection) -> list[Letter]:
    """Dead letters that wait, the oldest first."""
    rows = await db.execute(text(_LETTERS), {"limit": FINDINGS_READ})
    return [
        Letter(row.id, row.gateway_id, row.source, row.request_id, row.reason, _tokens(row.payload))
        for row in rows
    ]


async def load_late_tokens(db: AsyncConnection, since: datetime) -> int:
    """By how many tokens accounts that came too late, at or after `since`, differ from the rows."""
    return int(await db.scalar(text(_LATE_TOKENS), {"since": since}) or 0)


async def load_orphaned_attempts(
    db: AsyncConnection, since: datetime, until: datetime
) -> list[Lost]:
    """Requests of a period that have attempts and no record."""
    chosen = {"since": since, "until": until, "limit": FINDINGS_READ}
    rows = await db.execute(text(_ORPHANED_ATTEMPTS), chosen)
    return [Lost(row[0], row[1], int(row[2]), "an attempt of it") for row in rows]


async def load_known(db: AsyncConnection, request_ids: Collection[UUID]) -> frozenset[UUID]:
    """Which of these requests have a row, or a dead letter, or came too late for a row."""
    if not request_ids:
        return frozenset()
    return frozenset((await db.execute(_KNOWN, {"ids": list(request_ids)})).scalars())


def _tokens(payload: bytes) -> int | None:
    try:
        record = msgspec.msgpack.decode(payload, type=UsageRecord)
    except msgspec.DecodeError:
        return None
    return record.prompt_tokens + record.output_tokens
