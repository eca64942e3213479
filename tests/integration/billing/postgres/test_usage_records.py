from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine
from usage_examples import a_record, an_admission

from billing.domain.usage_record import Outcome, UsageRecord, UsageSource
from billing.postgres.usage_records import (
    GroupBy,
    InvalidCursor,
    JournaledRecord,
    UsageFilter,
    insert_batch,
    list_records,
    sum_usage,
)
from gateway.adapters.postgres import async_engine

VIEW_RECORDS = """request_id uuid, tenant_id text, api_key_id text, model text, class text,
    admitted_at timestamp with time zone, first_token_at timestamp with time zone,
    ended_at timestamp with time zone, prompt_tokens integer, cached_prompt_tokens integer,
    output_tokens integer, reasoning_tokens integer, sequences integer, queue_ms integer,
    ttft_ms integer, tpot_us integer, itl_max_us integer, outcome text, final boolean,
    finish_reason text, usage_source text, provider text, worker_id text, attempts integer,
    billable boolean, billing_policy integer, price_id bigint, cost_pico bigint,
    list_cost_pico bigint, currency text"""
VIEW_ATTEMPTS = """request_id uuid, attempt integer, worker_id text, provider text,
    started_at timestamp with time zone, ended_at timestamp with time zone, outcome text,
    prompt_tokens integer, output_tokens integer, provider_request_id text,
    provider_cost_pico bigint"""


@pytest.fixture
async def engine(database_url: str) -> AsyncIterator[AsyncEngine]:
    """An engine on a migrated database of this test's own."""
    opened = async_engine(database_url)
    yield opened
    await opened.dispose()


async def insert(engine: AsyncEngine, *records: UsageRecord) -> int:
    """Insert as one gateway's journal, in a transaction of its own."""
    rows = [JournaledRecord(each, "gw-1", 7, seq) for seq, each in enumerate(records, start=1)]
    async with engine.begin() as db:
        return await insert_batch(db, rows)


async def query(engine: AsyncEngine, statement: str, **values: object) -> list[tuple[Any, ...]]:
    async with engine.connect() as db:
        return [tuple(row) for row in await db.execute(text(statement), values)]


@pytest.mark.parametrize(
    ("view", "columns"), [("usage_records", VIEW_RECORDS), ("usage_attempts", VIEW_ATTEMPTS)]
)
async def test_views_are_the_contract(engine: AsyncEngine, view: str, columns: str) -> None:
    """Names, types and order of the contract's views, to the letter."""
    rows = await query(
        engine,
        "SELECT column_name || ' ' || data_type FROM information_schema.columns"
        " WHERE table_name = :view ORDER BY ordinal_position",
        view=view,
    )
    assert [row[0] for row in rows] == [" ".join(column.split()) for column in columns.split(",")]


async def test_a_record_reads_as_it_was_written(engine: AsyncEngine) -> None:
    """Every field of a record and of its attempts comes back through the views, times to the ms."""
    admission = an_admission(at_ms=1_795_970_008_193, request_class="batch")
    money = {"price_id": 7, "cost_pico": 2**63 - 1, "list_cost_pico": 0, "currency": "KWD"}
    record = a_record(admission, reasoning_tokens=6, usage_flags=("a", "b"), **money)
    assert await insert(engine, record) == 1
    async with engine.connect() as db:
        page = await list_records(db, UsageFilter())
    (row,) = page.records
    expected = {
        field: getattr(record, field)
        for field in (
            *("request_id", "tenant_id", "api_key_id", "model", "request_class"),
            *("prompt_tokens", "cached_prompt_tokens", "output_tokens", "reasoning_tokens"),
            *("sequences", "queue_ms", "ttft_ms", "tpot_us", "itl_max_us", "outcome", "final"),
            *("finish_reason", "usage_source", "usage_flags", "provider", "worker_id"),
            *("billable", "billing_policy", *money),
        )
    }
    assert {field: getattr(row, field) for field in expected} == expected
    assert row.admitted_at == datetime(2026, 11, 29, 16, 33, 28, 193_000, tzinfo=UTC)
    assert row.ended_at - row.admitted_at == timedelta(milliseconds=250)
    assert row.attempts == 1
    (attempt,) = await query(
        engine,
        "SELECT request_id, attempt, worker_id, provider, outcome, prompt_tokens, output_tokens,"
        " extract(epoch FROM ended_at - started_at)::float FROM usage_attempts",
    )
    assert attempt == (record.request_id, 1, "local-0", "self", "completed", 12, 20, 0.245)


async def test_an_attempt_says_where_its_counts_come_from(engine: AsyncEngine) -> None:
    """And what of the prompt was cached; NULL where the journal's release did not say."""
    record = a_record()
    (silent,) = record.attempts
    told = msgspec.structs.replace(
        silent, attempt=2, usage_source=UsageSource.ENGINE_PROGRESS, cached_prompt_tokens=0
    )
    await insert(engine, msgspec.structs.replace(record, attempts=(silent, told)))
    assert await query(
        engine,
        "SELECT attempt, usage_source, cached_prompt_tokens FROM usage_attempt ORDER BY attempt",
    ) == [(1, None, None), (2, "engine_progress", 0)]


async def test_a_record_without_money_reads_so(engine: AsyncEngine) -> None:
    """What an earlier release left in a journal: NULL, never 0."""
    await insert(engine, a_record())
    async with engine.connect() as db:
        (row,) = (await list_records(db, UsageFilter())).records
    assert (row.price_id, row.cost_pico, row.list_cost_pico, row.currency) == (None,) * 4


async def test_repeating_a_batch_adds_nothing(engine: AsyncEngine) -> None:
    """M08. A retry after an unknown commit, a record twice in one batch: one row each."""
    records = [a_record() for _ in range(5)]
    assert await insert(engine, *records, records[0]) == 5
    assert await insert(engine, *records) == 0
    changed = [msgspec.structs.replace(each, output_tokens=999) for each in records]
    assert await insert(engine, *changed) == 0
    assert await query(engine, "SELECT count(*), max(output_tokens) FROM usage_records") == [
        (5, 20)
    ]
    assert await query(engine, "SELECT count(*) FROM usage_attempts") == [(5,)]


async def test_a_final_record_replaces_a_provisional_one_once(engine: AsyncEngine) -> None:
    """The journal's own account takes a reaper's place, and nothing takes its own."""
    admission = an_admission()
    provisional = a_record(
        admission,
        final=False,
        outcome=Outcome.GATEWAY_LOST,
        usage_source=UsageSource.ESTIMATED,
        attempts=(),
        output_tokens=0,
    )
    assert await insert(engine, provisional) == 1
    assert await insert(engine, a_record(admission)) == 1
    assert await insert(engine, provisional, a_record(admission, output_tokens=1)) == 0
    assert await query(engine, "SELECT outcome, final, output_tokens FROM usage_records") == [
        ("completed", True, 20)
    ]
    assert await query(engine, "SELECT count(*) FROM usage_attempts") == [(1,)]


async def test_what_replaces_a_provisional_record_is_its_own(engine: AsyncEngine) -> None:
    """Its attempts say what the journal says, and when Postgres saw it is when it was replaced."""
    admission = an_admission()
    whole = a_record(admission)
    (attempt,) = whole.attempts
    partial = msgspec.structs.replace(attempt, outcome=Outcome.GATEWAY_LOST, output_tokens=3)
    seen = "SELECT recorded_at FROM usage_record"
    await insert(engine, a_record(admission, final=False, attempts=(partial,)))
    ((provisional_at,),) = await query(engine, seen)
    await insert(engine, whole)
    ((final_at,),) = await query(engine, seen)
    assert final_at > provisional_at
    assert await query(engine, "SELECT attempt, outcome, output_tokens FROM usage_attempts") == [
        (1, "completed", 20)
    ]
    await insert(engine, msgspec.structs.replace(whole, attempts=(partial,)))
    assert await query(engine, "SELECT output_tokens FROM usage_attempts") == [(20,)]
    assert await query(engine, seen) == [(final_at,)]


@pytest.mark.parametrize(
    ("field", "value", "constraint"),
    [
        ("output_tokens", -1, "counts"),
        ("sequences", 0, "counts"),
        ("queue_ms", -1, "durations"),
        ("tpot_us", -5, "durations"),
        ("cached_prompt_tokens", 13, "cached"),
        ("request_class", "flex", "class"),
        ("provider", "hosted:", "provider"),
        ("admitted_at_ms", 1_795_970_008_193, "id_time"),
    ],
)
async def test_what_cannot_be_true_is_refused(
    engine: AsyncEngine, field: str, value: object, constraint: str
) -> None:
    """The database itself refuses a row that contradicts the contract."""
    record = msgspec.structs.replace(a_record(cached_prompt_tokens=0), **{field: value})
    with pytest.raises(DBAPIError) as caught:
        await insert(engine, record)
    assert f"usage_record_{constraint}_check" in str(caught.value)


@pytest.mark.parametrize("field", ["outcome", "usage_source"])
async def test_unknown_words_are_refused(engine: AsyncEngine, field: str) -> None:
    """An outcome or source that the contract does not know is no record."""
    record = msgspec.structs.replace(a_record(), **{field: "lost_in_space"})
    with pytest.raises(DBAPIError, match=f"usage_record_{field}_check"):
        await insert(engine, record)


async def test_more_cached_than_prompt_is_kept_when_flagged(engine: AsyncEngine) -> None:
    """An engine's contradiction is recorded as such, never silently mended."""
    record = a_record(cached_prompt_tokens=13, usage_flags=("cached_over_prompt",))
    assert await insert(engine, record) == 1


async def test_an_id_that_is_no_uuid_v7_is_refused(engine: AsyncEngine) -> None:
    """Only an id that carries its time is an id here."""
    wrong = msgspec.convert(
        "0b42a2a6-7f6b-4f7e-9d0a-5f7e0a6b1c2d", type=type(a_record().request_id)
    )
    with pytest.raises(DBAPIError, match="usage_record_id_time_check"):
        await insert(engine, msgspec.structs.replace(a_record(), request_id=wrong))


async def test_the_time_in_an_id_is_exact(engine: AsyncEngine) -> None:
    """To the millisecond, over the years that rows may have."""
    instants = [0, 1, 999, 1_700_000_000_001, 1_795_970_008_193, 4_102_444_799_999]
    ids = [str(an_admission(at_ms=instant).request_id) for instant in instants]
    rows = await query(
        engine,
        "SELECT (extract(epoch FROM uuid_v7_time(id::uuid)) * 1000)::bigint,"
        " uuid_v7_time(id::uuid) = unix_ms_time(ms)"
        " FROM unnest(cast(:ids AS text[]), cast(:ms AS bigint[])) AS given (id, ms)",
        ids=ids,
        ms=instants,
    )
    assert rows == [(instant, True) for instant in instants]


async def test_pages_hold_every_record_once(engine: AsyncEngine) -> None:
    """Newest first, by tenant and time, in pages that later arrivals do not shift."""
    start = 1_795_970_000_000
    records = [
        a_record(an_admission(at_ms=start + step // 2, tenant_id=("acme", "globex")[step % 3 == 0]))
        for step in range(40)
    ]
    await insert(engine, *records)
    chosen = UsageFilter(
        tenant_id="acme",
        since=datetime.fromtimestamp((start + 3) / 1000, UTC),
        until=datetime.fromtimestamp((start + 15) / 1000, UTC),
    )
    expected = sorted(
        (
            each
            for each in records
            if each.tenant_id == "acme" and start + 3 <= each.admitted_at_ms < start + 15
        ),
        key=lambda each: each.request_id,
        reverse=True,
    )
    seen: list[object] = []
    cursor: str | None = None
    while True:
        async with engine.connect() as db:
            page = await list_records(db, chosen, limit=4, cursor=cursor)
        seen += [row.request_id for row in page.records]
        cursor = page.next_cursor
        if cursor is None:
            break
        await insert(engine, a_record(an_admission(at_ms=start + 14)))
    assert seen == [each.request_id for each in expected]


@pytest.mark.parametrize("cursor", ["", "x", "0b42a2a6-7f6b-4f7e-9d0a-5f7e0a6b1c2d"])
async def test_a_made_up_cursor_is_refused(engine: AsyncEngine, cursor: str) -> None:
    """Anything that no page gave is not a place."""
    async with engine.connect() as db:
        with pytest.raises(InvalidCursor):
            await list_records(db, UsageFilter(), cursor=cursor)


def group_of(record: UsageRecord, group_by: GroupBy) -> str:
    """The group that a record belongs to."""
    day = datetime.fromtimestamp(record.admitted_at_ms / 1000, UTC).date()
    return {
        GroupBy.TENANT: record.tenant_id,
        GroupBy.KEY: record.api_key_id,
        GroupBy.MODEL: record.model,
        GroupBy.CLASS: record.request_class,
        GroupBy.PROVIDER: record.provider,
        GroupBy.DAY: str(day),
    }[group_by]


@pytest.mark.parametrize("group_by", list(GroupBy))
async def test_sums_by_any_dimension_equal_the_total(
    engine: AsyncEngine, group_by: GroupBy
) -> None:
    """However it is grouped, the groups add up to all, billable apart from what is not."""
    start = 1_795_970_000_000
    records = [
        a_record(
            an_admission(
                at_ms=start + step * 9_000_000,
                tenant_id=f"tenant-{step % 3}",
                api_key_id=f"key-{step % 5}",
                model=f"model-{step % 2}",
                request_class=("interactive", "batch")[step % 2],
            ),
            output_tokens=2_000_000_000 + step,
            billable=step % 4 != 0,
            final=step % 7 != 0,
        )
        for step in range(30)
    ]
    await insert(engine, *records)
    async with engine.connect() as db:
        sums = await sum_usage(db, UsageFilter(), group_by=group_by)
    assert [each.group for each in sums] == sorted({group_of(each, group_by) for each in records})
    for each in sums:
        mine = [record for record in records if group_of(record, group_by) == each.group]
        paid = [record for record in mine if record.billable]
        assert each.requests == len(mine)
        assert each.output_tokens == sum(record.output_tokens for record in mine)
        assert each.cached_prompt_tokens == sum(record.cached_prompt_tokens for record in mine)
        assert each.billable_requests == len(paid)
        assert each.billable_output_tokens == sum(record.output_tokens for record in paid)
        assert each.provisional_requests == sum(not record.final for record in mine)


async def test_a_day_is_a_day_of_its_zone(engine: AsyncEngine) -> None:
    """23:30 UTC is the next day in Tokyo."""
    instant = int(datetime(2026, 11, 29, 23, 30, tzinfo=UTC).timestamp() * 1000)
    await insert(engine, a_record(an_admission(at_ms=instant)))
    async with engine.connect() as db:
        utc = await sum_usage(db, UsageFilter(), group_by=GroupBy.DAY)
        tokyo = await sum_usage(db, UsageFilter(), group_by=GroupBy.DAY, time_zone="Asia/Tokyo")
    assert [each.group for each in utc + tokyo] == ["2026-11-29", "2026-11-30"]
