"""COPY writes what INSERT writes, and gives way to it where it cannot."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec
import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine
from usage_examples import a_record, an_admission

from billing.domain.usage_record import Outcome, UsageRecord, UsageSource
from billing.postgres import shipments, usage_copy
from billing.postgres.shipments import store_spare
from billing.postgres.usage_copy import copy_batch
from billing.postgres.usage_insert import JournaledRecord, insert_batch
from gateway.adapters.postgres import async_engine

ALL = (
    "SELECT to_jsonb(usage_record) - 'recorded_at' FROM usage_record ORDER BY request_id",
    "SELECT to_jsonb(usage_attempt) FROM usage_attempt ORDER BY request_id, choice, attempt",
)


@pytest.fixture
async def engine(database_url: str) -> AsyncIterator[AsyncEngine]:
    """An engine on a migrated database of this test's own."""
    opened = async_engine(database_url)
    yield opened
    await opened.dispose()


async def everything(engine: AsyncEngine) -> list[list[Any]]:
    """Every column of every row but when it was written."""
    async with engine.connect() as db:
        return [list((await db.execute(text(query))).scalars()) for query in ALL]


def of_every_kind() -> list[JournaledRecord]:
    """Rows with each column set, with each that may be empty empty, and with odd texts."""
    usual = a_record()
    money = {"price_id": 7, "cost_pico": 2**63 - 1, "list_cost_pico": 0, "currency": "KWD"}
    bare = dict.fromkeys(("first_token_at_ms", "ttft_ms", "tpot_us", "itl_max_us", "worker_id"))
    (attempt,) = usual.attempts
    attempts = tuple(
        msgspec.structs.replace(
            attempt,
            choice=choice,
            attempt=number,
            provider="hosted:x",
            provider_request_id="é\t\\N",
            provider_cost_pico=3,
            usage_source=UsageSource.COUNTED,
            cached_prompt_tokens=1,
        )
        for choice, number in ((1, 1), (0, 2), (0, 1), (0, 1))
    )
    records = [
        usual,
        a_record(an_admission(), finish_reason=None, attempts=(), **bare),
        a_record(an_admission(request_class="batch"), usage_flags=("a", "b"), **money),
        a_record(tenant_id='"', attempts=attempts, outcome=Outcome.TIMED_OUT),
        a_record(final=False, model="\\N\t\n"),
    ]
    placed = [JournaledRecord(each, "gw-1", 7, seq) for seq, each in enumerate(records, 1)]
    return [*placed, JournaledRecord(a_record(), "gw-2")]


def told_otherwise(record: UsageRecord) -> UsageRecord:
    """Another account of the same request, a final one."""
    attempts = tuple(msgspec.structs.replace(each, output_tokens=99) for each in record.attempts)
    return msgspec.structs.replace(record, final=True, attempts=attempts)


async def test_both_ways_write_the_same(engine: AsyncEngine) -> None:
    """To the last column; what is there already stays, what is provisional is replaced."""
    rows = of_every_kind()
    found = []
    for way in (insert_batch, copy_batch):
        async with engine.begin() as db:
            assert await way(db, [rows[1], rows[0], *rows[1:], rows[2]]) == 6
        found.append(await everything(engine))
        final = [row._replace(record=told_otherwise(row.record)) for row in rows]
        async with engine.begin() as db:
            assert await way(db, final) == 1
        found[-1] += await everything(engine)
        async with engine.begin() as db:
            await db.execute(text("TRUNCATE usage_record, usage_attempt"))
    assert found[0] == found[1]
    assert [len(each) for each in found[0]] == [6, 7, 6, 7]


def many(count: int, **changes: object) -> list[JournaledRecord]:
    """Enough to go by COPY."""
    return [
        JournaledRecord(a_record(an_admission(), **changes), "gw-1", 7, n)
        for n in range(1, count + 1)
    ]


async def test_a_way_that_fails_loses_no_row(
    engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no temporary table can be made INSERT writes them all; where one can, INSERT is not
    asked."""
    inserted: list[int] = []

    async def noted(db: AsyncConnection, rows: Sequence[JournaledRecord]) -> int:
        inserted.append(len(rows))
        return await insert_batch(db, rows)

    monkeypatch.setattr(shipments, "insert_batch", noted)
    rows = many(shipments.COPY_ROWS_MIN)
    assert await store_spare(engine, rows) == 0
    assert inserted == []
    monkeypatch.setattr(usage_copy._RECORDS, "create", "CREATE TEMP TABLE pg_temp.no (x no_type)")
    assert await store_spare(engine, many(40)) == 0
    assert inserted == [40]
    assert len((await everything(engine))[0]) == len(rows) + 40


async def test_one_bad_row_of_many(engine: AsyncEngine) -> None:
    """Found by the slower way, whatever COPY said of it, client's side or server's."""
    for number, bad in enumerate(
        (a_record(output_tokens=-1), a_record(queue_ms="soon"), a_record(finish_reason="a\0b"))
    ):
        rows = [*many(60), JournaledRecord(bad, "gw-1", 8, number)]
        assert await store_spare(engine, rows) == 1
    assert len((await everything(engine))[0]) == 180


async def test_a_connection_serves_again_and_again(engine: AsyncEngine) -> None:
    """The temporary tables are empty at the next batch, after a failed one too."""
    for _ in range(3):
        assert await store_spare(engine, [*many(40), *many(1, output_tokens=-1)]) == 1
        assert await store_spare(engine, many(40)) == 0
    assert len((await everything(engine))[0]) == 240
