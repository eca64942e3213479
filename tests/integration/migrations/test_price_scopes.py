"""Prices of tenants, plans and classes beside gateways of the release before, and what the database
makes of them, whoever writes them.

What that release sent is frozen here: it read `price`, and wrote to it.
"""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from price_examples import a_price
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from billing.domain.price_book import Price
from billing.domain.price_past import is_of_line, replaced
from gateway.adapters.postgres import async_engine
from gateway.migrate import MigrationFailed, downgrade, upgrade

OLD_NEWEST = "SELECT coalesce(max(price.changed), 0) FROM price"
OLD_READ = """SELECT price.id, price.model, price.provider, price.currency, price.input_pico,
        price.cached_input_pico, price.output_pico, price.effective_from, price.changed,
        price.created_at
    FROM price WHERE price.changed > :after AND price.changed <= :newest
    ORDER BY price.changed LIMIT 100"""
OLD_WRITE = """INSERT INTO price
        (model, provider, currency, input_pico, cached_input_pico, output_pico, effective_from)
    VALUES ('m', 'self', 'USD', 1, NULL, 3,
        date_trunc('milliseconds', clock_timestamp()) + cast(:begins AS text)::interval)
    RETURNING price.id, price.model, price.provider, price.currency, price.input_pico,
        price.cached_input_pico, price.output_pico, price.effective_from, price.changed,
        price.created_at"""
NEW = """INSERT INTO price_entry (model, provider, currency, tenant_id, plan, class, input_pico,
        output_pico, reasoning_pico, request_pico, withdrawn, effective_from)
    VALUES ('m', 'self', 'USD', :tenant_id, :plan, :class, :input, :output, :reasoning, :request,
        :withdrawn, date_trunc('milliseconds', clock_timestamp()) + cast(:begins AS text)::interval)
    RETURNING id"""
PLAIN: dict[str, Any] = {
    "tenant_id": None,
    "plan": None,
    "class": None,
    "input": 1,
    "output": 3,
    "reasoning": None,
    "request": 0,
    "withdrawn": False,
    "begins": "1 hour",
}
NO_PRICE = {"input": None, "output": None, "withdrawn": True}


@pytest.fixture
async def engine(database_url: str) -> AsyncIterator[AsyncEngine]:
    """An engine on a fresh database."""
    made = async_engine(database_url)
    yield made
    await made.dispose()


async def one(engine: AsyncEngine, statement: str, **values: object) -> tuple[Any, ...]:
    """Run a statement in a transaction of its own and return its row."""
    async with engine.begin() as db:
        return tuple((await db.execute(text(statement), values)).one())


async def write(engine: AsyncEngine, **changes: object) -> int:
    """A price; its id."""
    return int((await one(engine, NEW, **PLAIN | changes))[0])


async def read_as_before(engine: AsyncEngine) -> list[int]:
    """The prices that a gateway of the release before has in memory, all as list prices."""
    async with engine.connect() as db:
        newest = (await db.execute(text(OLD_NEWEST))).scalar_one()
        return [row.id for row in await db.execute(text(OLD_READ), {"after": 0, "newest": newest})]


@pytest.mark.parametrize(
    "changes",
    [
        {"tenant_id": "acme"},
        {"plan": "gold"},
        {"class": "batch"},
        {"reasoning": 5},
        {"request": 5},
        {"tenant_id": "acme", **NO_PRICE},
    ],
)
async def test_the_release_before_sees_list_prices_it_can_charge_and_no_others(
    engine: AsyncEngine, changes: dict[str, Any]
) -> None:
    """A tenant's price is to it no list price, and none is less than it is. Where it looks for
    what is new meanwhile, it finds nothing, and goes on."""
    plain = await write(engine)
    await write(engine, **{"begins": "2 hours", **changes})
    assert await read_as_before(engine) == [plain]
    later = await write(engine, begins="3 hours")
    assert await read_as_before(engine) == [plain, later]


async def test_the_release_before_writes_list_prices(engine: AsyncEngine) -> None:
    """Its price is one of this release's, and guarded alike."""
    written = await one(engine, OLD_WRITE, begins="1 hour")
    assert written[1:7] == ("m", "self", "USD", 1, None, 3)
    row = await one(
        engine, "SELECT id, tenant_id, plan, class, request_pico, withdrawn FROM price_entry"
    )
    assert row == (written[0], None, None, None, 0, False)
    assert await read_as_before(engine) == [written[0]]
    for statement in ("UPDATE price SET input_pico = 0", "DELETE FROM price"):
        with pytest.raises(DBAPIError, match="append-only"):
            await one(engine, statement)
    await one(engine, OLD_WRITE, begins="-1 day")
    with pytest.raises(DBAPIError, match="in the past"):
        await one(engine, OLD_WRITE, begins="-6 seconds")


async def test_prices_of_before_are_list_prices(engine: AsyncEngine, database_url: str) -> None:
    """With their ids; and there is no way back once there is one that would be lost."""
    await downgrade(database_url, "0012")
    written = await one(engine, OLD_WRITE, begins="1 hour")
    await upgrade(database_url)
    assert await read_as_before(engine) == [written[0]]
    assert await write(engine, begins="2 hours") > written[0]
    await downgrade(database_url, "0012")
    await upgrade(database_url)
    await write(engine, tenant_id="acme")
    with pytest.raises((MigrationFailed, DBAPIError), match="cannot read"):
        await downgrade(database_url, "0012")


@pytest.mark.parametrize(
    ("changes", "check"),
    [
        ({"tenant_id": "acme", "plan": "gold"}, "price_scope_check"),
        ({"class": "slow"}, "price_class_check"),
        ({"reasoning": -1}, "price_pico_check"),
        ({"request": 10**17 + 1}, "price_pico_check"),
        ({"request": -1}, "price_pico_check"),
        ({"input": None}, "price_withdrawn_check"),
        ({"output": None}, "price_withdrawn_check"),
        ({"withdrawn": True}, "price_withdrawn_check"),
        (NO_PRICE, "price_withdrawn_check"),
        ({"plan": "gold", **NO_PRICE, "request": 1}, "price_withdrawn_check"),
    ],
)
async def test_no_odd_price_is_stored(
    engine: AsyncEngine, changes: dict[str, Any], check: str
) -> None:
    """B26: output without a price for it is none. The list's own is never withdrawn."""
    with pytest.raises(DBAPIError, match=check):
        await write(engine, **changes)


@pytest.mark.parametrize("line", [{}, {"tenant_id": "acme"}, {"plan": "gold"}, {"class": "batch"}])
async def test_no_two_of_one_line_begin_together(engine: AsyncEngine, line: dict[str, str]) -> None:
    """V46: in the database itself, whatever of the line's names is empty."""
    at = NEW.replace("clock_timestamp()", "timestamptz '2099-01-01T00:00:00Z'")
    for other in ({"plan": "other"}, {"tenant_id": "other"}, {"class": "interactive"}, line):
        await one(engine, at, **PLAIN | other)
    with pytest.raises(DBAPIError, match="price_model_key"):
        await one(engine, at, **PLAIN | line | {"input": 7})


async def test_plans_are_added_and_never_for_the_past(engine: AsyncEngine) -> None:
    add = """INSERT INTO plan_member (tenant_id, plan, effective_from)
        VALUES ('acme', 'gold', date_trunc('milliseconds', clock_timestamp())
            + cast(:begins AS text)::interval) RETURNING changed"""
    await one(engine, add, begins="0 seconds")
    with pytest.raises(DBAPIError, match="in the past"):
        await one(engine, add, begins="-6 seconds")
    for statement in ("UPDATE plan_member SET plan = NULL", "DELETE FROM plan_member"):
        with pytest.raises(DBAPIError, match="append-only"):
            await one(engine, statement)


lines = st.sampled_from(
    [
        (tenant_id, plan, of)
        for tenant_id, plan in ((None, None), ("acme", None), ("other", None), (None, "gold"),
                                (None, "iron"))
        for of in (None, "interactive", "batch")
    ]
)  # fmt: skip
past = st.lists(
    st.tuples(lines, st.integers(-6, 3)), max_size=5, unique_by=lambda each: (each[0], each[1])
)


@settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(past, lines, st.integers(-6, -1))
async def test_the_database_and_the_rule_agree_on_the_past(
    engine: AsyncEngine,
    there: list[tuple[tuple[str | None, str | None, str | None], int]],
    line: tuple[str | None, str | None, str | None],
    begins: int,
) -> None:
    """V46: a price begins in the past exactly where none held that it would take the place of.
    `acme` was on the plan `gold`, and on no other."""
    there = [each for each in there if each != (line, begins)]
    prices = [
        a_price(tenant_id=t, plan=p, request_class=c, effective_from_ms=at * 3_600_000)
        for (t, p, c), at in there
    ]
    async with engine.connect() as db:
        await db.execute(text("ALTER TABLE price_entry DISABLE TRIGGER price_refuse_past"))
        await db.execute(
            text(
                "INSERT INTO plan_member (tenant_id, plan, effective_from) VALUES ('acme', 'gold',"
                " date_trunc('milliseconds', clock_timestamp()))"
            )
        )
        for (tenant_id, plan, of), at in there:
            await _write_at(db, (tenant_id, plan, of), at)
        await db.execute(text("ALTER TABLE price_entry ENABLE TRIGGER price_refuse_past"))
        if _held(prices, line, begins) is None:
            await _write_at(db, line, begins)
        else:
            with pytest.raises(DBAPIError, match="in the past"):
                await _write_at(db, line, begins)
        await db.rollback()


async def _write_at(
    db: AsyncConnection, line: tuple[str | None, str | None, str | None], hours: int
) -> None:
    of_line = dict(zip(("tenant_id", "plan", "class"), line, strict=True))
    await db.execute(text(NEW), PLAIN | of_line | {"begins": f"{hours} hours"})


def _held(
    prices: list[Price], line: tuple[str | None, str | None, str | None], begins: int
) -> Price | None:
    """By the rule, the time being 0 h."""
    begins_ms = begins * 3_600_000
    nexts = [
        each.effective_from_ms
        for each in prices
        if is_of_line(each, *line) and each.effective_from_ms > begins_ms
    ]
    return replaced(
        prices,
        tenant_id=line[0],
        plan=line[1],
        request_class=line[2],
        plans={"gold"} if line[0] == "acme" else set(),
        begins_ms=begins_ms,
        until_ms=min([2_000, *nexts]),
    )
