"""What journals, Postgres and engines say in the end, each read from its own files or tables."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

import asyncpg
import msgspec
from metering_run.accounts import Accounts, Asked, Disturbance, Ran, Row, Try
from metering_run.arena import Arena

from backend.sglang_http.ledger import LedgerEntry
from billing.domain.usage_record import UsageRecord
from gateway.adapters.journal.entries import AdmittedEntry, EndedEntry, decode
from gateway.adapters.journal.reader import read_whole
from gateway.adapters.journal.segment import list_segments
from gateway.adapters.journal.sight import journals_below

ROWS = """
SELECT request_id, outcome, usage_source, prompt_tokens, output_tokens,
    cached_prompt_tokens, sequences, final, usage_flags, seq, ended_at
FROM usage_record
"""
# Rows number a request's attempts, engines those of a choice.
TRIES = """
SELECT request_id, choice, row_number() OVER (PARTITION BY request_id, choice ORDER BY attempt)
    AS attempt, worker_id, started_at, ended_at, outcome, usage_source, prompt_tokens, output_tokens
FROM usage_attempt
"""
DEAD_LETTERS = "SELECT count(*) FROM usage_dead_letter"
MISSING = "SELECT coalesce(sum(missing_count), 0) FROM journal_watermark"
REQUEST_DIGITS = 32


async def accounts_of(
    made: Arena, asked: Sequence[Asked], disturbances: Sequence[Disturbance]
) -> Accounts:
    """All of them. Everything is to be at rest."""
    admitted: Counter[str] = Counter()
    ended: dict[str, list[Row]] = defaultdict(list)
    for process in made.gateways:
        for directory in journals_below(made.journal(process.name)):
            for entry in _entries(directory):
                if isinstance(entry, AdmittedEntry):
                    admitted[entry.body.request_id.hex] += 1
                else:
                    ended[entry.body.request_id.hex].append(_told(entry.body))
    workers = [name for name in made.processes if name.startswith("worker-")]
    connection = await asyncpg.connect(made.database_url)
    try:
        return Accounts(
            admitted=admitted,
            ended=ended,
            rows=[_row(each) for each in await connection.fetch(ROWS)],
            tries=[_try(each) for each in await connection.fetch(TRIES)],
            ran=[ran for name in workers for ran in ran_by(name, made.ledger(name))],
            asked=asked,
            disturbances=disturbances,
            dead_letters=await connection.fetchval(DEAD_LETTERS),
            missing=int(await connection.fetchval(MISSING)),
        )
    finally:
        await connection.close()


def _entries(directory: Path) -> Iterator[AdmittedEntry | EndedEntry]:
    for key in list_segments(directory):
        for stretch in read_whole(key.path(directory)):
            for frame in stretch.frames:
                entry = decode(frame.payload)
                if isinstance(entry, AdmittedEntry | EndedEntry):
                    yield entry


def ran_by(worker: str, ledger: Path) -> Iterator[Ran]:
    """What a worker's file says that it ran."""
    for line in ledger.read_bytes().splitlines():
        entry = msgspec.json.decode(line, type=LedgerEntry)
        if not entry.health:
            request, rest = entry.rid[:REQUEST_DIGITS], entry.rid[REQUEST_DIGITS:]
            choice, attempt = int(rest[:2]), int(rest[2:])
            prompt = entry.prompt_tokens if entry.started_at_ms is not None else 0
            output, cached = entry.completion_tokens, entry.cached_tokens or 0
            yield Ran(request, choice, attempt, worker, prompt, output, cached)


def _told(record: UsageRecord) -> Row:
    return Row(
        request_id=record.request_id.hex,
        outcome=record.outcome,
        source=record.usage_source,
        prompt=record.prompt_tokens,
        output=record.output_tokens,
        cached=record.cached_prompt_tokens,
        sequences=record.sequences,
    )


def _row(row: asyncpg.Record) -> Row:
    return Row(
        request_id=row["request_id"].hex,
        outcome=row["outcome"],
        source=row["usage_source"],
        prompt=row["prompt_tokens"],
        output=row["output_tokens"],
        cached=row["cached_prompt_tokens"],
        sequences=row["sequences"],
        ended_ms=_ms(row["ended_at"]),
        final=row["final"],
        flags=tuple(row["usage_flags"]),
        by_journal=row["seq"] is not None,
    )


def _try(row: asyncpg.Record) -> Try:
    return Try(
        request_id=row["request_id"].hex,
        choice=row["choice"],
        attempt=row["attempt"],
        worker=row["worker_id"],
        started_ms=_ms(row["started_at"]),
        ended_ms=_ms(row["ended_at"]),
        outcome=row["outcome"],
        source=row["usage_source"],
        prompt=row["prompt_tokens"],
        output=row["output_tokens"],
    )


def _ms(instant: datetime) -> int:
    return round(instant.timestamp() * 1000)
