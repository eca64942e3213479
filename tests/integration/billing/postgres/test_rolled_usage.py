"""Sums from roll-ups are the sums of the records, whatever is rolled up and whatever is not."""

import random
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest
from invoice_world import InvoiceWorld
from sqlalchemy import text

from billing.postgres.rolled_usage import sum_rolled_usage
from billing.postgres.rollups import roll_up
from billing.postgres.usage_records import GroupBy, UsageFilter, sum_usage
from gateway.adapters.postgres import async_engine

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)


@pytest.fixture
async def world(database_url: str) -> AsyncIterator[InvoiceWorld]:
    """A database of this test's own."""
    engine = async_engine(database_url)
    yield InvoiceWorld(engine)
    await engine.dispose()


@pytest.mark.parametrize("seed", range(3))
async def test_roll_ups_and_records_say_the_same(world: InvoiceWorld, seed: int) -> None:
    """By every dimension, for one tenant and for all, over periods with and without whole quarters,
    in days of other zones; with all, some and no quarters marked."""
    chance = random.Random(seed)  # noqa: S311 - repeatable, not secret
    for _ in range(6):
        for _ in range(chance.randint(1, 12)):
            at = NOON + timedelta(minutes=chance.randint(-1500, 1500))
            await world.use(
                at.isoformat(),
                tenant_id=chance.choice("ab"),
                api_key_id=chance.choice("kl"),
                model=chance.choice("mn"),
                request_class=chance.choice(("interactive", "batch")),
                billable=chance.random() < 0.7,
                final=chance.random() < 0.7,
                reasoning_tokens=chance.randint(0, 9),
            )
        for _ in range(chance.randint(0, 1)):
            await world.roll_up(coarser=chance.random() < 0.7)
        for _ in range(12):
            since = NOON + timedelta(minutes=chance.randint(-1600, 1600))
            chosen = UsageFilter(
                tenant_id=chance.choice((None, "a", "b")),
                since=chance.choice((None, since, NOON)),
                until=chance.choice(
                    (None, since + timedelta(minutes=chance.choice((1, 15, 16, 600))))
                ),
            )
            for group_by in GroupBy:
                zone = chance.choice(("UTC", "Asia/Kathmandu", "America/St_Johns"))
                wanted = await world.read(sum_usage, chosen, group_by=group_by, time_zone=zone)
                found = await world.read(
                    sum_rolled_usage, chosen, group_by=group_by, time_zone=zone
                )
                assert found == wanted, (chosen, group_by, zone)


async def test_rolled_up_quarters_are_not_read_again(world: InvoiceWorld) -> None:
    """B12: it is the roll-ups that are read, not millions of records: a wrong one shows, until it
    is marked."""
    await world.use("2026-01-05T12:00:00Z")
    await world.roll_up()
    await world.sql("UPDATE usage_rollup SET requests = 7")
    chosen = UsageFilter(tenant_id="acme")
    (rolled,) = await world.read(sum_rolled_usage, chosen, group_by=GroupBy.MODEL)
    assert rolled.requests == 7
    await world.use("2026-01-05T12:01:00Z")
    (marked,) = await world.read(sum_rolled_usage, chosen, group_by=GroupBy.MODEL)
    assert marked.requests == 2


async def test_what_is_made_anew_meanwhile_is_counted_once(world: InvoiceWorld) -> None:
    """A roll-up that is not committed yet has taken its mark for itself alone."""
    await world.use("2026-01-05T12:00:00Z")
    chosen = UsageFilter(tenant_id="acme")
    async with world.engine.begin() as other:
        assert await roll_up(other) == 1
        assert await other.scalar(text("SELECT count(*) FROM usage_rollup")) == 1
        (before,) = await world.read(sum_rolled_usage, chosen, group_by=GroupBy.KEY)
    (after,) = await world.read(sum_rolled_usage, chosen, group_by=GroupBy.KEY)
    assert before == after
    assert after.requests == 1
