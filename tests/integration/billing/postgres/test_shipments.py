import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec
import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine
from usage_examples import a_record, an_admission

from billing.domain.usage_record import Outcome, UsageRecord
from billing.postgres.dead_letters import DeadLetter, count_open
from billing.postgres.journal_watermarks import Watermark, load_watermarks
from billing.postgres.shipments import (
    SchemaBehind,
    Shipment,
    WatermarkMoved,
    store,
    store_spare,
)
from billing.postgres.usage_insert import JournaledRecord
from gateway.adapters.postgres import async_engine

EMPTY = Watermark()


@pytest.fixture
async def engine(database_url: str) -> AsyncIterator[AsyncEngine]:
    """An engine on a migrated database of this test's own."""
    opened = async_engine(database_url)
    yield opened
    await opened.dispose()


def a_shipment(
    records: Sequence[UsageRecord],
    *,
    before: Watermark = EMPTY,
    gateway_id: str = "gw-1",
    letters: Sequence[DeadLetter] = (),
) -> Shipment:
    rows = [
        JournaledRecord(record, gateway_id, 7, before.seq + number)
        for number, record in enumerate(records, start=1)
    ]
    count = len(records) + len(letters)
    after = Watermark(
        before.seq + count, before.admitted_count, before.ended_count + count, before.missing_count
    )
    return Shipment(
        gateway_id=gateway_id, boot=7, rows=rows, letters=letters, before=before, after=after
    )


async def query(engine: AsyncEngine, statement: str) -> list[tuple[Any, ...]]:
    async with engine.connect() as db:
        return [tuple(row) for row in await db.execute(text(statement))]


async def watermark(engine: AsyncEngine, gateway_id: str = "gw-1") -> Watermark | None:
    async with engine.connect() as db:
        return (await load_watermarks(db, gateway_id)).get(7)


async def test_records_and_watermark_go_together(engine: AsyncEngine) -> None:
    """A stored shipment leaves its rows, each with its place in the journal, and its watermark."""
    first = a_shipment([a_record(), a_record()])
    assert await store(engine, first) == 0
    second = a_shipment([a_record()], before=first.after)
    assert await store(engine, second) == 0
    assert await watermark(engine) == Watermark(3, 0, 3, 0)
    places = await query(engine, "SELECT gateway_id, boot, seq FROM usage_record ORDER BY seq")
    assert places == [("gw-1", 7, 1), ("gw-1", 7, 2), ("gw-1", 7, 3)]


async def test_a_shipment_goes_in_once(engine: AsyncEngine) -> None:
    """The same again, or one that begins elsewhere, changes nothing and says so."""
    first = a_shipment([a_record()])
    await store(engine, first)
    ahead = a_shipment([a_record()], before=Watermark(9, 0, 9, 0))
    for shipment in (first, ahead):
        with pytest.raises(WatermarkMoved):
            await store(engine, shipment)
    assert await watermark(engine) == first.after
    assert await query(engine, "SELECT count(*) FROM usage_record") == [(1,)]


async def test_a_watermark_cannot_go_back(engine: AsyncEngine) -> None:
    """Not even by hand: the database refuses."""
    await store(engine, a_shipment([a_record(), a_record()]))
    with pytest.raises(DBAPIError, match="never goes back"):
        async with engine.begin() as db:
            await db.execute(text("UPDATE journal_watermark SET seq = 1, ended_count = 1"))


async def test_gateways_have_watermarks_of_their_own(engine: AsyncEngine) -> None:
    """Two journals with the same boot and numbers do not meet."""
    await store(engine, a_shipment([a_record()]))
    await store(engine, a_shipment([a_record(), a_record()], gateway_id="gw-2"))
    assert await watermark(engine) == Watermark(1, 0, 1, 0)
    assert await watermark(engine, "gw-2") == Watermark(2, 0, 2, 0)


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("output_tokens", -1, "23514 usage_record_counts_check"),
        ("output_tokens", 2**40, "22"),
        ("finish_reason", "a\0b", "22021"),
        ("tenant_id", None, "23502 tenant_id"),
        ("queue_ms", "soon", "22"),
        ("admitted_at_ms", 5, "23514 usage_record_id_time_check"),
    ],
)
async def test_a_refused_record_stops_no_other(
    engine: AsyncEngine, field: str, value: object, reason: str
) -> None:
    """Whatever is wrong with one record, it lies among the dead letters, whole, with the reason,
    and the others are rows."""
    records = [a_record() for _ in range(20)]
    records[13] = msgspec.structs.replace(records[13], **{field: value})
    assert await store(engine, a_shipment(records)) == 1
    assert await query(engine, "SELECT count(*) FROM usage_record") == [(19,)]
    assert await query(engine, "SELECT count(*) FROM usage_attempt") == [(19,)]
    ((gateway_id, source, request_id, found_reason, payload),) = await query(
        engine, "SELECT gateway_id, source, request_id, reason, payload FROM usage_dead_letter"
    )
    assert (gateway_id, source, request_id) == ("gw-1", "7:14", records[13].request_id)
    assert found_reason.startswith(reason)
    assert payload == msgspec.msgpack.encode(records[13])
    assert await watermark(engine) == Watermark(20, 0, 20, 0)


async def test_a_refused_attempt_takes_its_record_along(engine: AsyncEngine) -> None:
    """A record whose attempt cannot be stored is refused whole, not half."""
    record = a_record()
    attempt = msgspec.structs.replace(record.attempts[0], attempt=0)
    bad = msgspec.structs.replace(record, attempts=(attempt,))
    assert await store(engine, a_shipment([a_record(), bad])) == 1
    assert await query(engine, "SELECT count(*) FROM usage_record") == [(1,)]
    assert await query(engine, "SELECT reason FROM usage_dead_letter") == [
        ("23514 usage_attempt_counts_check",)
    ]


async def test_m04_many_keys_and_models_in_one_shipment(engine: AsyncEngine) -> None:
    """500 pairs of key and model: 500 rows."""
    records = [
        a_record(
            an_admission(api_key_id=f"key-{number % 25}", model=f"model-{number // 25}"),
        )
        for number in range(500)
    ]
    await store(engine, a_shipment(records))
    assert await query(
        engine, "SELECT count(*), count(DISTINCT (api_key_id, model)) FROM usage_record"
    ) == [(500, 500)]


async def test_m05_four_writers_of_the_same_requests(database_url: str) -> None:
    """A shipper of each of several gateways and a reaper may write the same requests at once, in
    whatever order they have them: none waits for one that waits for it, each row is written once.
    """
    engine = async_engine(database_url, pool_size=4)
    records = [a_record() for _ in range(400)]
    refused = a_record(output_tokens=-1)

    async def write(number: int) -> int:
        rows = [JournaledRecord(record, f"gw-{number}") for record in [*records, refused]]
        random.Random(number).shuffle(rows)  # noqa: S311 - an order, no secret
        return await store_spare(engine, rows)

    for _ in range(3):
        assert await asyncio.gather(*map(write, range(4))) == [1] * 4
    assert await query(engine, "SELECT count(*) FROM usage_record") == [(400,)]
    await engine.dispose()


async def test_many_refused_records(engine: AsyncEngine) -> None:
    """A batch full of them is a table full of dead letters, and a watermark that moves on."""
    records = [a_record(output_tokens=-1 if number % 3 else 1) for number in range(60)]
    assert await store(engine, a_shipment(records)) == 40
    assert await query(engine, "SELECT count(*) FROM usage_record") == [(20,)]
    async with engine.connect() as db:
        assert await count_open(db) == 40


async def test_an_unreadable_record_is_a_dead_letter(engine: AsyncEngine) -> None:
    """What this version could not read is kept as it lay in the journal; seen again, once."""
    letter = DeadLetter("gw-1", "7:2", None, "unreadable", b"\x93abc")
    assert await store(engine, a_shipment([a_record()], letters=[letter])) == 1
    await store_spare(engine, [])
    assert await query(engine, "SELECT source, payload FROM usage_dead_letter") == [
        ("7:2", b"\x93abc")
    ]


async def test_a_missing_table_blames_no_record(engine: AsyncEngine) -> None:
    """A database that is not ready is waited for: nothing is buried, nothing moves."""
    async with engine.begin() as db:
        await db.execute(text("ALTER TABLE usage_record RENAME TO elsewhere"))
    with pytest.raises(DBAPIError):
        await store(engine, a_shipment([a_record()]))
    assert await query(engine, "SELECT count(*) FROM usage_dead_letter") == [(0,)]
    assert await watermark(engine) is None


async def test_a_value_that_an_older_schema_refuses_is_waited_for(engine: AsyncEngine) -> None:
    """Until the migrations have run nothing is buried, nothing moves; then it is a row. Of other
    constraints an older schema is as sure as any."""
    narrow = (
        "ALTER TABLE usage_attempt DROP CONSTRAINT usage_attempt_outcome_check,"
        " ADD CONSTRAINT usage_attempt_outcome_check CHECK (outcome IN ('completed'{}))"
    )
    async with engine.begin() as db:
        await db.execute(text(narrow.format("")))
        await db.execute(text("UPDATE alembic_version SET version_num = '0004'"))
    record = a_record()
    attempt = msgspec.structs.replace(record.attempts[0], outcome=Outcome.TAKEN_BACK)
    record = msgspec.structs.replace(record, attempts=(attempt,))
    with pytest.raises(SchemaBehind, match="usage_attempt_outcome_check"):
        await store(engine, a_shipment([a_record(), record]))
    assert await query(engine, "SELECT count(*) FROM usage_dead_letter") == [(0,)]
    assert await watermark(engine) is None
    first = a_shipment([a_record(), a_record(output_tokens=-1)])
    assert await store(engine, first) == 1
    async with engine.begin() as db:
        await db.execute(text(narrow.format(", 'taken_back'")))
    assert await store(engine, a_shipment([record], before=first.after)) == 0


async def test_a_value_that_the_newest_schema_refuses_is_a_dead_letter(
    engine: AsyncEngine,
) -> None:
    """There is nothing to wait for, nor where the schema is a later release's."""
    wrong = [a_record(outcome=Outcome.TAKEN_BACK) for _ in range(2)]
    first = a_shipment(wrong[:1])
    assert await store(engine, first) == 1
    async with engine.begin() as db:
        await db.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    assert await store(engine, a_shipment(wrong[1:], before=first.after)) == 1


async def test_a_partition_that_is_gone_blames_no_record(engine: AsyncEngine) -> None:
    """Without any partition for it a row is refused for now, not for ever."""
    async with engine.begin() as db:
        await db.execute(text("DROP TABLE usage_record_default"))
        await db.execute(
            text(
                "DO $$ DECLARE part regclass; BEGIN FOR part IN SELECT inhrelid::regclass FROM"
                " pg_inherits WHERE inhparent = 'usage_record'::regclass LOOP"
                " EXECUTE 'DROP TABLE ' || part; END LOOP; END $$"
            )
        )
    with pytest.raises(DBAPIError):
        await store(engine, a_shipment([a_record()]))
    assert await query(engine, "SELECT count(*) FROM usage_dead_letter") == [(0,)]


async def test_spare_records_have_no_place_in_a_journal(engine: AsyncEngine) -> None:
    """Records that no file took are rows like any other, repeated ones and refused ones too."""
    good, bad = a_record(), a_record(output_tokens=-1)
    rows = [JournaledRecord(good, "gw-1"), JournaledRecord(bad, "gw-1")]
    assert await store_spare(engine, rows) == 1
    assert await store_spare(engine, rows) == 1
    assert await query(engine, "SELECT request_id, boot, seq FROM usage_record") == [
        (good.request_id, None, None)
    ]
    assert await query(engine, "SELECT source FROM usage_dead_letter") == [
        (f"spare:{bad.request_id}",)
    ]
