"""What the unit cost reads, against the same rows counted one by one."""

from collections import defaultdict
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine
from unit_cost_rows import SINCE, UNTIL, add_samples, add_workers, at, rows, store

from billing.domain.unit_cost.allocation import Cell
from billing.domain.unit_cost.question import CostBy
from billing.domain.unit_cost.report import Sold
from billing.domain.unit_cost.step_model import EngineWork
from billing.domain.usage_record import UsageAttempt, UsageRecord
from billing.postgres.unit_cost import read_seen, read_sold, read_work
from gateway.adapters.postgres import async_engine

MINUTE = timedelta(minutes=1)


@pytest.fixture
async def postgres(database_url: str) -> AsyncIterator[AsyncEngine]:
    """With the rows."""
    engine = async_engine(database_url, pool_size=2)
    await store(engine, rows())
    yield engine
    await engine.dispose()


def group_of(record: UsageRecord, by: CostBy) -> str:
    """As the page has it."""
    admitted = datetime.fromtimestamp(record.admitted_at_ms / 1000, UTC)
    return {
        CostBy.TENANT: record.tenant_id,
        CostBy.MODEL: record.model,
        CostBy.CLASS: record.request_class,
        CostBy.DAY: admitted.date().isoformat(),
        CostBy.HOUR: f"{admitted.hour:02}:00",
    }[by]


def work_of(record: UsageRecord, attempt: UsageAttempt) -> EngineWork:
    """One attempt's, as the step model's page has it."""
    prompt, output = attempt.prompt_tokens, attempt.output_tokens
    cached = attempt.cached_prompt_tokens
    if cached is None:
        cached = record.cached_prompt_tokens if len(record.attempts) == 1 else 0
    cached = min(cached, prompt)
    uncached = prompt - cached
    held_ms = attempt.ended_at_ms - attempt.started_at_ms
    first_ms = max(record.first_token_at_ms or 0, attempt.started_at_ms)
    decode_ms = max(0, attempt.ended_at_ms - first_ms)
    several = output > 1
    return EngineWork(
        prefills=int(prompt > 0),
        uncached_tokens=uncached,
        attended_twice=uncached * (2 * cached + uncached),
        output_tokens=output,
        token_ms_twice=2 * prompt * held_ms + output * decode_ms,
        decode_ms=decode_ms if several else 0,
        decode_gaps=output - 1 if several else 0,
    )


def chosen(model: str | None) -> list[UsageRecord]:
    """Within the time."""
    return [
        each
        for each in rows()
        if at(0) <= each.admitted_at_ms < at(48) and model in (None, each.model)
    ]


@pytest.mark.parametrize("by", list(CostBy))
@pytest.mark.parametrize("by_day", [False, True])
@pytest.mark.parametrize("model", [None, "m", "nobody"])
async def test_work_is_every_attempts_on_the_pool(
    postgres: AsyncEngine, by: CostBy, by_day: bool, model: str | None
) -> None:
    """By span and group, and by hour of the day, to the token and the millisecond."""
    cells: defaultdict[tuple[int, str], EngineWork] = defaultdict(EngineWork)
    hours: defaultdict[int, EngineWork] = defaultdict(EngineWork)
    for record in chosen(model):
        hour = (record.admitted_at_ms - at(0)) // 3_600_000
        place = (hour // 24 if by_day else 0, group_of(record, by))
        for attempt in record.attempts:
            if attempt.provider == "self":
                work = work_of(record, attempt)
                cells[place] = cells[place].plus(work)
                hours[hour % 24] = hours[hour % 24].plus(work)
    async with postgres.connect() as db:
        found = await read_work(db, SINCE, UNTIL, by=by, model=model, by_day=by_day)
    assert sorted(found.cells) == sorted(Cell(*place, work) for place, work in cells.items())
    assert found.hours == hours


@pytest.mark.parametrize("model", [None, "m"])
async def test_what_was_sold_is_the_pools_rows(postgres: AsyncEngine, model: str | None) -> None:
    """Each currency apart, what has no price counted, hosted rows left out and counted."""
    others = [] if model else [Sold("globex", "n", "USD", 1, 2_000, 1_200, 101, 5 * 10**9, 0)]
    async with postgres.connect() as db:
        found = await read_sold(db, SINCE, UNTIL, by=CostBy.TENANT, model=model)
    # globex has one without a price, and one in whose place another gateway spoke.
    assert sorted(found.sold, key=str) == sorted(
        [
            Sold("acme", "m", "USD", 2, 4_000, 2_400, 203, 10 * 10**9, 0),
            Sold("acme", "m", "JPY", 1, 2_000, 1_200, 101, 700 * 10**12, 0),
            Sold("globex", "m", "USD", 2, 4_000, 2_400, 202, 5 * 10**9, 1),
            *others,
        ],
        key=str,
    )
    assert (found.hosted_requests, found.provisional_requests) == (1, 1)


async def test_a_worker_was_there_between_samples_that_are_close(postgres: AsyncEngine) -> None:
    """Up to sixteen minutes apart; a single sample is no time; other models' are left out."""
    async with postgres.begin() as db:
        await add_workers(db, ("w1", "m"), ("w2", "n"))
        steps = (-10, 5, 20, 36, 53, 60)
        await add_samples(db, "w1", *(MINUTE * step for step in steps))
        await add_samples(db, "w2", MINUTE * 2, MINUTE * 3)
        await add_samples(db, "gone", -MINUTE * 40, MINUTE * 9, MINUTE * 2_885, MINUTE * 2_890)
    async with postgres.connect() as db:
        of_m = await read_seen(db, SINCE, UNTIL, model="m")
        everyone = await read_seen(db, SINCE, UNTIL, model=None)
    minutes = [
        (each.worker_id, *((ms - at(0)) // 60_000 for ms in (each.start_ms, each.end_ms)))
        for each in everyone
    ]
    assert minutes == [
        ("gone", 9, 9),
        ("gone", 2_885, 2_890),
        ("w1", -10, 36),
        ("w1", 53, 60),
        ("w2", 2, 3),
    ]
    assert [each for each in everyone if each.worker_id == "w1"] == of_m
