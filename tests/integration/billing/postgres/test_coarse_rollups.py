"""Days and totals are what their quarters are, and are read where they can be."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from invoice_world import MODEL, InvoiceWorld

from billing.postgres.coarse_rollups import load_coarse_differences, make_coarser
from billing.postgres.rolled_usage import sum_rolled_usage
from billing.postgres.rollups import roll_up
from billing.postgres.usage_buckets import sum_tokens
from billing.postgres.usage_charts import Measure, _Reading, read_chart
from billing.postgres.usage_records import GroupBy, UsageFilter
from billing.postgres.usage_sources import Chosen
from gateway.adapters.postgres import async_engine

DAY = timedelta(days=1)
MIDNIGHT = datetime(2026, 1, 5, tzinfo=UTC)
PERIOD = Chosen(since=MIDNIGHT - DAY, until=MIDNIGHT + 2 * DAY)
LEVELS = """SELECT level, count(*), sum(requests)::bigint FROM usage_rollup_coarse
    GROUP BY 1 ORDER BY 1"""


@pytest.fixture
async def world(database_url: str) -> AsyncIterator[InvoiceWorld]:
    """A database of this test's own, with the price of a model."""
    engine = async_engine(database_url)
    world = InvoiceWorld(engine)
    await world.open()
    yield world
    await engine.dispose()


async def use_two_days(world: InvoiceWorld) -> None:
    """Of two tenants, one with two keys, at both ends of a day."""
    for at, tenant, key in (
        ("2026-01-05T00:00:00Z", "acme", "k"),
        ("2026-01-05T23:59:59.999Z", "acme", "l"),
        ("2026-01-05T12:00:00Z", "globex", "g"),
        ("2026-01-06T00:00:00Z", "acme", "k"),
    ):
        await world.use(at, tenant_id=tenant, api_key_id=key)


def levels(days: tuple[int, int, int], weeks: tuple[int, int]) -> list[tuple[str, int, int]]:
    """So many groups in detail, by key and by tenant, all of four requests."""
    names = ("day_detail", "day_key", "day_tenant", "week_key", "week_tenant")
    return [(name, count, 4) for name, count in zip(names, (*days, *weeks), strict=True)]


async def differing(world: InvoiceWorld) -> list[Any]:
    """Days and totals that are not the sums of their quarters."""
    found = await world.read(load_coarse_differences, PERIOD.since, PERIOD.until, limit=100)
    return [(each.bucket, each.tenant_id, each.group.split()[0]) for each in found]


async def requests_of(world: InvoiceWorld, group_by: GroupBy) -> dict[str, int]:
    chosen = UsageFilter(since=PERIOD.since, until=PERIOD.until)
    found = await world.read(sum_rolled_usage, chosen, group_by=group_by)
    return {each.group: each.requests for each in found}


async def test_a_day_is_rolled_up_at_three_levels(world: InvoiceWorld) -> None:
    """Its first instant is in it, its end is in the next; each level has all of it."""
    await use_two_days(world)
    await world.roll_up()
    assert await world.query(LEVELS) == levels(days=(4, 4, 3), weeks=(3, 2))
    assert await world.query("SELECT sum(requests)::bigint FROM usage_rollup_total") == [(4,)]
    assert await differing(world) == []
    for marks in ("usage_rollup_week_dirty", "usage_rollup_day_dirty", "usage_rollup_total_dirty"):
        assert await world.query(f"SELECT count(*) FROM {marks}") == [(0,)]


async def test_what_is_not_over_stays_marked(world: InvoiceWorld) -> None:
    """Today, and the quarter of an hour that is: there is nothing to be made of them yet, and what
    they hold is in every sum."""
    now = datetime.now(UTC)
    await world.use(now.isoformat())
    await world.roll_up()
    assert await world.query("SELECT count(*) FROM usage_rollup_coarse") == [(0,)]
    assert await world.query("SELECT count(*) FROM usage_rollup_total") == [(0,)]
    assert await world.query("SELECT tenant_id FROM usage_rollup_day_dirty") == [("acme",)]
    for group_by in (GroupBy.TENANT, GroupBy.MODEL):
        (found,) = await world.read(sum_rolled_usage, UsageFilter(), group_by=group_by)
        assert found.requests == 1


async def test_coarse_roll_ups_are_what_is_read(world: InvoiceWorld) -> None:
    """B12: days by tenant and by key, totals by model, and no quarters: a wrong one shows where it
    is read, until it is marked."""
    await use_two_days(world)
    await world.roll_up()
    for level, wrong in (("day_tenant", 10), ("day_key", 100), ("day_detail", 1_000)):
        await world.sql(f"UPDATE usage_rollup_{level} SET requests = {wrong}")
    await world.sql("UPDATE usage_rollup_total SET requests = 7")
    assert await requests_of(world, GroupBy.TENANT) == {"acme": 20, "globex": 10}
    assert await requests_of(world, GroupBy.KEY) == {"k": 200, "l": 100, "g": 100}
    assert await requests_of(world, GroupBy.MODEL) == {MODEL: 28}
    by_model = Chosen(since=PERIOD.since, until=PERIOD.until, models=[MODEL])
    sums = await world.read(sum_tokens, by_model, width=DAY, by=("tenant_id",))
    assert [each.requests for each in sums] == [2_000, 1_000, 1_000]
    await world.use("2026-01-05T01:00:00Z")
    assert await requests_of(world, GroupBy.TENANT) == {"acme": 10 + 3, "globex": 10}


async def test_whole_weeks_are_read_as_weeks(world: InvoiceWorld) -> None:
    """From Monday on; what is before and after it by days, a week with a mark by what it is of."""
    await use_two_days(world)
    await world.use("2026-01-04T12:00:00Z", tenant_id="globex", api_key_id="g")
    await world.use("2026-01-12T12:00:00Z", tenant_id="globex", api_key_id="g")
    await world.roll_up()
    await world.sql("UPDATE usage_rollup_week_tenant SET requests = 10")
    await world.sql("UPDATE usage_rollup_day_tenant SET requests = 100")
    fortnight = UsageFilter(since=MIDNIGHT - DAY, until=MIDNIGHT + 8 * DAY)
    found = await world.read(sum_rolled_usage, fortnight, group_by=GroupBy.TENANT)
    assert [(each.group, each.requests) for each in found] == [("acme", 10), ("globex", 210)]
    await world.sql(f"INSERT INTO usage_rollup_week_dirty VALUES ('{MIDNIGHT}', 'acme')")
    found = await world.read(sum_rolled_usage, fortnight, group_by=GroupBy.TENANT)
    assert [(each.group, each.requests) for each in found] == [("acme", 200), ("globex", 210)]
    await world.use("2026-01-05T01:00:00Z", tenant_id="globex", api_key_id="g")
    found = await world.read(sum_rolled_usage, fortnight, group_by=GroupBy.TENANT)
    assert [(each.group, each.requests) for each in found] == [("acme", 200), ("globex", 202)]


async def test_a_late_record_makes_its_day_anew(world: InvoiceWorld) -> None:
    """A quarter that is made marks its day and its total; a day without records has no roll-up."""
    await use_two_days(world)
    await world.roll_up()
    await world.use("2026-01-05T00:01:00Z", tenant_id="acme", api_key_id="k")
    await world.sql("DELETE FROM usage_record WHERE tenant_id = 'globex'")
    await world.roll_up(coarser=False)
    assert await differing(world) == []
    assert await requests_of(world, GroupBy.TENANT) == {"acme": 4}
    await world.roll_up()
    assert await world.query(LEVELS) == levels(days=(3, 3, 2), weeks=(2, 1))
    assert await differing(world) == []
    assert await requests_of(world, GroupBy.TENANT) == {"acme": 4}


async def test_what_is_made_anew_meanwhile_is_counted_once(world: InvoiceWorld) -> None:
    """A day that is not committed yet has taken its mark for itself alone."""
    await use_two_days(world)
    await world.roll_up(coarser=False)
    wanted = await requests_of(world, GroupBy.KEY)
    async with world.engine.begin() as other:
        assert await make_coarser(other) == 3 + 4
        assert await requests_of(world, GroupBy.KEY) == wanted
        async with world.engine.begin() as third:
            assert await make_coarser(third) is None
            assert await roll_up(third) is None
    assert await requests_of(world, GroupBy.KEY) == wanted == {"g": 1, "k": 2, "l": 1}


async def test_a_wrong_day_and_a_wrong_total_are_found(world: InvoiceWorld) -> None:
    """REC-4: where they are not what their quarters say, though nothing marked them; of days those
    that are whole in the period, of weeks those that end in it."""
    await use_two_days(world)
    await world.roll_up()
    await world.sql("UPDATE usage_rollup_day_key SET cost_pico = 1 WHERE api_key_id = 'l'")
    await world.sql("DELETE FROM usage_rollup_total WHERE bucket = '2026-01-05T12:00Z'")
    noon = MIDNIGHT + DAY / 2
    assert await differing(world) == [
        (noon, "(all tenants)", f"model={MODEL}"),
        (MIDNIGHT, "acme", "level=day_key"),
    ]
    found = await world.read(load_coarse_differences, noon, MIDNIGHT + 2 * DAY, limit=100)
    assert [each.bucket for each in found] == [noon]
    await world.sql("DELETE FROM usage_rollup_week_key WHERE tenant_id = 'globex'")
    for end, weeks in ((6, []), (7, ["week_key", "week_key", "week_tenant"]), (8, [])):
        period = (MIDNIGHT + (end - 1) * DAY, MIDNIGHT + end * DAY)
        found = await world.read(load_coarse_differences, *period, limit=100)
        assert sorted(each.group.split()[0].removeprefix("level=") for each in found) == weeks


async def test_a_chart_is_one_look(world: InvoiceWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is shown of all and of each group adds up, also where something is written between two
    of its statements."""
    await use_two_days(world)
    await world.roll_up()
    whole = _Reading.whole

    async def written_before(reading: _Reading) -> Any:
        await world.use("2026-01-05T02:00:00Z", tenant_id="globex", api_key_id="g")
        return await whole(reading)

    monkeypatch.setattr(_Reading, "whole", written_before)
    async with world.engine.connect() as db:
        await db.begin()
        first = await read_chart(
            db, PERIOD, width=DAY, by="tenant_id", measure=Measure.REQUESTS, limit=1
        )
    assert first.group_count == 2
    assert [(name, counts.requests) for name, counts in first.groups] == [("acme", 3)]
    assert first.next is not None
    assert first.points == {
        int(MIDNIGHT.timestamp()): {"acme": 2, "globex": 1},
        int((MIDNIGHT + DAY).timestamp()): {"acme": 1},
    }
    assert first.whole.requests == 4
    monkeypatch.undo()
    rest = await world.read(
        read_chart, PERIOD, width=DAY, by="tenant_id", measure=Measure.REQUESTS, limit=1,
        after=first.next,
    )  # fmt: skip
    assert [name for name, _ in rest.groups] == ["globex"]
    assert rest.next is None
