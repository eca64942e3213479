"""Gateways of several releases ship into one database, before, during and after a migration.

What earlier releases sent is frozen here: their columns, in their order, and their statements.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from servers import eventually
from shipping import DRAIN_MS, ids, query, rows, serve
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine
from usage_examples import a_record

from billing.domain.usage_record import UsageRecord
from billing.postgres.usage_insert import JournaledRecord, insert_batch
from gateway.adapters.journal import Journal
from gateway.adapters.postgres import async_engine
from gateway.adapters.shipper import Shipper
from gateway.migrate import downgrade, upgrade

BEFORE = "0006"
"""The revision before the one that gave attempts their source."""

RECORD_0002 = (
    "request_id uuid, admitted_at ms, tenant_id text, api_key_id text, model text, class text,"
    " first_token_at ms, ended_at ms, prompt_tokens integer, cached_prompt_tokens integer,"
    " output_tokens integer, reasoning_tokens integer, sequences integer, queue_ms integer,"
    " ttft_ms integer, tpot_us integer, itl_max_us integer, outcome text, final boolean,"
    " finish_reason text, usage_source text, usage_flags words, provider text, worker_id text,"
    " attempts integer, billable boolean, billing_policy integer"
)
PLACE_0002 = ", gateway_id text, boot bigint, seq bigint"
MONEY_0004 = ", price_id bigint, cost_pico bigint, list_cost_pico bigint, currency text"
ATTEMPT_0002 = (
    "request_id uuid, admitted_at ms, choice integer, attempt integer, worker_id text,"
    " provider text, started_at ms, ended_at ms, outcome text, prompt_tokens integer,"
    " output_tokens integer, provider_request_id text, provider_cost_pico bigint"
)
RELEASES = {
    "0002 and 0003": RECORD_0002 + PLACE_0002,
    "0004 to 0006": RECORD_0002 + MONEY_0004 + PLACE_0002,
}
STORED = {"ms": "unix_ms_time({})", "words": "string_to_array({}, ' ')"}
SENT = {"ms": "bigint", "words": "text"}
MOVE_WATERMARK = (
    "INSERT INTO journal_watermark (gateway_id, boot, seq, admitted_count, ended_count,"
    " missing_count) VALUES ($1, 7, $2, 0, $2, 0) ON CONFLICT (gateway_id, boot)"
    " DO UPDATE SET seq = EXCLUDED.seq, ended_count = EXCLUDED.ended_count, updated_at = now()"
)


@pytest.fixture
async def engine(database_url: str) -> AsyncIterator[AsyncEngine]:
    """An engine on a migrated database of this test's own."""
    made = async_engine(database_url, pooled=False)
    yield made
    await made.dispose()


def statement(table: str, columns: str, on_conflict: str) -> str:
    """As those releases wrote it."""
    pairs = [column.split() for column in columns.split(", ")]
    names = ", ".join(f'"{name}"' for name, _ in pairs)
    stored = ", ".join(STORED.get(kind, '"{}"').format(name) for name, kind in pairs)
    sent = ", ".join(f"${n}::{SENT.get(kind, kind)}[]" for n, (_, kind) in enumerate(pairs, 1))
    return (
        f"INSERT INTO {table} ({names}) SELECT {stored} FROM unnest({sent})"
        f" AS sent ({names}) ON CONFLICT {on_conflict}"
    )


def values(columns: str, subjects: Sequence[dict[str, Any]]) -> tuple[list[Any], ...]:
    """An array a column."""
    names = [column.split()[0] for column in columns.split(", ")]
    return tuple([subject[name] for subject in subjects] for name in names)


def plain(subject: Any) -> dict[str, Any]:
    """A record's or an attempt's fields, by the names of columns."""
    found = {name: getattr(subject, name) for name in subject.__struct_fields__}
    return found | {name.removesuffix("_ms"): found[name] for name in found if "_at_ms" in name}


async def insert_as(
    release: str, db: AsyncConnection, records: Sequence[UsageRecord], gateway_id: str
) -> int:
    """What a gateway of that release does with a batch, within the caller's transaction."""
    columns = RELEASES[release]
    replaced = ", ".join(
        f'"{name}" = EXCLUDED."{name}"'
        for name in (column.split()[0] for column in columns.split(", "))
        if name not in ("request_id", "admitted_at")
    )
    subjects = [
        plain(record)
        | {
            "class": record.request_class,
            "usage_flags": " ".join(record.usage_flags),
            "attempts": len(record.attempts),
            "gateway_id": gateway_id,
            "boot": 7,
            "seq": seq,
        }
        for seq, record in enumerate(records, 1)
    ]
    on_conflict = (
        f"(request_id, admitted_at) DO UPDATE SET {replaced}"
        " WHERE EXCLUDED.final AND NOT usage_record.final RETURNING request_id"
    )
    result = await db.exec_driver_sql(
        statement("usage_record", columns, on_conflict), values(columns, subjects)
    )
    written = set(result.scalars())
    attempts = [
        plain(attempt) | {"request_id": record.request_id, "admitted_at": record.admitted_at_ms}
        for record in records
        if record.request_id in written
        for attempt in record.attempts
    ]
    await db.exec_driver_sql(
        statement("usage_attempt", ATTEMPT_0002, "DO NOTHING"), values(ATTEMPT_0002, attempts)
    )
    return len(written)


@pytest.mark.parametrize("release", RELEASES)
async def test_an_older_release_ships_into_this_schema(engine: AsyncEngine, release: str) -> None:
    """What it does not know is empty. Whichever of the two comes first stands, once."""
    theirs, both, ours = a_record(), a_record(), a_record()
    async with engine.begin() as db:
        assert await insert_as(release, db, [theirs, both], "gw-old") == 2
    placed = [JournaledRecord(each, "gw-new", 7, seq) for seq, each in enumerate([both, ours], 1)]
    async with engine.begin() as db:
        assert await insert_batch(db, placed) == 1
        assert await insert_as(release, db, [both, ours], "gw-old") == 0
    assert await rows(engine) == ids([theirs, both, ours])
    assert await query(
        engine,
        "SELECT gateway_id, cost_pico, usage_source, cached_prompt_tokens FROM usage_record"
        " ORDER BY gateway_id DESC",
    ) == [(name, None, "engine_final", 4) for name in ("gw-old", "gw-old", "gw-new")]
    assert await query(engine, "SELECT count(*), count(usage_source) FROM usage_attempt") == [
        (3, 0)
    ]


async def test_this_release_waits_for_its_schema(
    engine: AsyncEngine, database_url: str, tmp_path: Path
) -> None:
    """On the schema before nothing of it is a row, a dead letter or a watermark; once migrated, all
    are rows, by a gateway that has run all the time. Meanwhile a gateway of the release before
    ships on, and loses nothing either."""
    await downgrade(database_url, BEFORE)
    journal = await Journal.open(tmp_path)
    shipper = Shipper(engine, journal, interval_ms=1, batch_rows=50)
    shipper.start()
    ours = await serve(journal, 60)
    theirs: list[UsageRecord] = []
    stop = asyncio.Event()

    async def older() -> None:
        while not stop.is_set():
            batch = [a_record() for _ in range(20)]
            async with engine.begin() as db:
                await db.exec_driver_sql(MOVE_WATERMARK, ("gw-old", len(theirs) + len(batch)))
                await insert_as("0004 to 0006", db, batch, "gw-old")
            theirs.extend(batch)

    other = asyncio.create_task(older())
    await eventually(lambda: shipper.last_error is not None)
    await eventually(lambda: len(theirs) >= 40)
    assert shipper.last_error is not None
    assert "42" in shipper.last_error
    found = await rows(engine)
    assert not found.keys() & ids(ours).keys()
    assert await query(engine, "SELECT count(*) FROM usage_dead_letter") == [(0,)]
    before = len(theirs)
    await upgrade(database_url)
    ours += await serve(journal, 40)
    assert await shipper.drain(DRAIN_MS)
    await eventually(lambda: len(theirs) >= before + 40)
    stop.set()
    await other
    assert await rows(engine) == ids(ours) + ids(theirs)
    assert Counter(
        row[0] for row in await query(engine, "SELECT gateway_id FROM usage_record")
    ) == Counter({journal.gateway_id: 100, "gw-old": len(theirs)})
    assert await query(
        engine, "SELECT seq, ended_count FROM journal_watermark WHERE gateway_id = 'gw-old'"
    ) == [(len(theirs), len(theirs))]
    assert shipper.dead_letters == 0
    await shipper.stop()
    await journal.close()
