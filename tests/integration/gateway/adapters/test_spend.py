"""A month's spend as Postgres sums it, from one view of the rows."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator

import pytest
from postgres_proxy import postgres_proxy
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine
from usage_examples import a_record, an_admission

from billing.domain.usage_record import UsageRecord
from billing.postgres.usage_insert import JournaledRecord, insert_batch
from gateway.adapters.postgres import async_engine
from gateway.adapters.spend import CONNECTIONS, PostgresSpend
from gateway.domain.billing_month import BillingMonth, month_key, month_of
from gateway.domain.instants import ms_of
from gateway.domain.spend import Cost
from gateway.serving.month_ports import SpendUnavailable

NOW_MS = time.time_ns() // 1_000_000
MONTH = month_of(month_key(NOW_MS, "UTC", "USD"))
INT64_MAX = 2**63 - 1
PARTITIONS = (
    "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'usage_record'::regclass"
)


@pytest.fixture
async def engine(database_url: str) -> AsyncIterator[AsyncEngine]:
    """An engine on a migrated database of this test's own."""
    opened = async_engine(database_url, pool_size=CONNECTIONS)
    yield opened
    await opened.dispose()


def a_cost(
    pico: int | None,
    *,
    key: str = "a",
    model: str = "m",
    at_ms: int = NOW_MS,
    tenant: str = "acme",
    currency: str = "USD",
) -> UsageRecord:
    admission = an_admission(at_ms, tenant_id=tenant, api_key_id=key, model=model)
    return a_record(admission, cost_pico=pico, list_cost_pico=pico, currency=currency)


async def insert(engine: AsyncEngine, *records: UsageRecord) -> None:
    async with engine.begin() as db:
        await insert_batch(db, [JournaledRecord(record, "gw-a") for record in records])


async def costs(
    engine: AsyncEngine, month: BillingMonth = MONTH, tenant: str = "acme"
) -> Counter[tuple[str, str]]:
    async with PostgresSpend(engine).snapshot(tenant, month) as snapshot:
        found = await snapshot.costs()
    return Counter({(cost.key_id, cost.model): cost.pico for cost in found})


async def test_sums_are_by_key_and_model(engine: AsyncEngine) -> None:
    """Of one tenant; what has no price costs nothing."""
    await insert(
        engine,
        a_cost(5),
        a_cost(7),
        a_cost(None),
        a_cost(11, key="b"),
        a_cost(13, model="n"),
        a_cost(None, key="c"),
        a_cost(1000, tenant="globex"),
    )
    assert await costs(engine) == {("a", "m"): 12, ("b", "m"): 11, ("a", "n"): 13, ("c", "m"): 0}
    assert await costs(engine, tenant="nobody") == {}


async def test_what_was_paid_in_another_currency_is_in_no_sum(engine: AsyncEngine) -> None:
    """A tenant that has changed its currency: amounts of two are never added as one."""
    yen = a_cost(7, currency="JPY")
    await insert(engine, a_cost(5), yen)
    assert await costs(engine) == {("a", "m"): 5}
    assert await costs(engine, MONTH._replace(currency="JPY")) == {("a", "m"): 7}
    async with PostgresSpend(engine).snapshot("acme", MONTH) as snapshot:
        assert await snapshot.costs_of([yen.request_id.hex]) == []


async def test_a_sum_may_be_larger_than_any_cost(engine: AsyncEngine) -> None:
    """Beyond 64 bits it is exact still."""
    await insert(engine, a_cost(INT64_MAX), a_cost(INT64_MAX), a_cost(3))
    assert await costs(engine) == {("a", "m"): 2 * INT64_MAX + 3}


@pytest.mark.parametrize("zone", ["UTC", "Pacific/Kiritimati", "Pacific/Pago_Pago"])
async def test_a_month_is_half_open_in_the_tenants_zone(engine: AsyncEngine, zone: str) -> None:
    """The first millisecond of the month counts, that of the next one does not."""
    month = month_of(month_key(NOW_MS, zone, "USD"))
    start_ms, end_ms = ms_of(month.start), ms_of(month.end)
    assert start_ms is not None
    assert end_ms is not None
    at = {1: start_ms - 1, 10: start_ms, 100: end_ms - 1, 1000: end_ms}
    await insert(engine, *(a_cost(pico, at_ms=ms) for pico, ms in at.items()))
    assert await costs(engine, month) == {("a", "m"): 110}


async def test_both_questions_see_the_same_rows(engine: AsyncEngine) -> None:
    """What is committed between them is in neither answer, and of the requests named only those
    count that are the tenant's, of the month, and among the rows."""
    seen, unpriced = a_cost(5), a_cost(None)
    others = a_cost(1, tenant="globex")
    earlier = a_cost(1, at_ms=NOW_MS - 40 * 86_400_000)
    await insert(engine, seen, unpriced, others, earlier, a_cost(6))
    late = a_cost(7)
    named = [each.request_id.hex for each in (seen, unpriced, others, earlier, late)]
    async with PostgresSpend(engine).snapshot("acme", MONTH) as snapshot:
        (total,) = await snapshot.costs()
        await insert(engine, late)
        assert await snapshot.costs_of(named) == [Cost("a", "m", 5)]
        assert await snapshot.costs_of([]) == []
        assert await snapshot.costs() == [total] == [Cost("a", "m", 11)]
    assert await costs(engine) == {("a", "m"): 18}


async def test_postgres_is_away(database_url: str) -> None:
    """It is said so: when it refuses, and when it breaks off between the two questions."""
    async with postgres_proxy(database_url) as proxy:
        engine = async_engine(proxy.url)

        async def broken_off() -> None:
            async with PostgresSpend(engine).snapshot("acme", MONTH) as snapshot:
                await snapshot.costs()
                await proxy.refuse()
                await snapshot.costs_of(["0" * 32])

        with pytest.raises(SpendUnavailable):
            await broken_off()
        with pytest.raises(SpendUnavailable):
            await costs(engine)
        await engine.dispose()


async def test_whoever_gives_up_leaves_the_pool_as_it_was(engine: AsyncEngine) -> None:
    """More than its connections at once wait for each other; cancelled ones give theirs back."""
    await insert(engine, a_cost(5))
    spend = PostgresSpend(engine)

    async def hold() -> None:
        async with spend.snapshot("acme", MONTH) as snapshot:
            await snapshot.costs()
            await asyncio.Event().wait()

    holding = [asyncio.create_task(hold()) for _ in range(CONNECTIONS)]
    waiting = asyncio.create_task(costs(engine))
    await asyncio.sleep(0.05)
    assert not waiting.done()
    for task in holding:
        task.cancel()
    assert (await asyncio.wait_for(waiting, 5))["a", "m"] == 5
    assert await asyncio.gather(*(costs(engine) for _ in range(10)))


async def test_only_the_months_partitions_are_touched(engine: AsyncEngine) -> None:
    """Somebody who has every other month's table to himself keeps nobody waiting: those are not
    even locked."""
    await insert(engine, a_cost(5))
    mine = "usage_record_y" + MONTH.name.replace("-", "m")
    async with engine.connect() as db:
        tables = await db.scalars(text(PARTITIONS))
        others = [table for table in tables if table != mine]
        assert len(others) >= 4
        await db.execute(text(f"LOCK TABLE {', '.join(others)} IN ACCESS EXCLUSIVE MODE"))
        async with asyncio.timeout(5):
            assert await costs(engine) == {("a", "m"): 5}
