"""Prices that a restored Postgres has lost come back as they were, by their numbers."""

from collections.abc import AsyncIterator

import pytest
from reaping import Everyone, Graves, graves
from shipping import query
from sqlalchemy import text

from gateway.adapters.postgres_past import RestoreWatch
from gateway.adapters.price_past import PricePast, lost_rows
from gateway.administration import Administration, NewPrice
from gateway.domain.tenant import Model

ACTOR = "cli:test"
ROWS = "SELECT to_jsonb(row) - 'changed' FROM {} AS row ORDER BY id"
TABLES = ("price_entry", "plan_member")


@pytest.fixture
async def system(database_url: str, redis_url: str) -> AsyncIterator[Graves]:
    """Empty stores of this test's own."""
    async with graves(database_url, redis_url) as made:
        yield made


def a_price(output_pico: int, plan: str | None = None) -> NewPrice:
    """Of one model, for everybody or a plan."""
    return NewPrice(
        model="m",
        provider="self",
        currency="USD",
        input_pico=1,
        cached_input_pico=None,
        output_pico=output_pico,
        plan=plan,
    )


async def look(system: Graves) -> None:
    """As a gateway does every 5 s."""
    await RestoreWatch(system.redis, system.engine, Everyone(), kept_ms=3_600_000).turn()


async def rows(system: Graves) -> dict[str, list[object]]:
    """All of both tables."""
    return {
        table: [row[0] for row in await query(system.engine, ROWS.format(table))]
        for table in TABLES
    }


async def lose(system: Graves, after_id: int) -> None:
    """Postgres is as it was when it had so many prices and no plans."""
    async with system.engine.begin() as db:
        for table, last in (("price_entry", after_id), ("plan_member", 0)):
            await db.execute(text(f"ALTER TABLE {table} DISABLE TRIGGER USER"))
            await db.execute(text(f"DELETE FROM {table} WHERE id > {last}"))
            await db.execute(text(f"ALTER TABLE {table} ENABLE TRIGGER USER"))
            sequence = f"pg_get_serial_sequence('{table}', 'id')"
            await db.execute(text(f"SELECT setval({sequence}, {last or 1}, {bool(last)})"))


async def test_what_is_lost_comes_back_and_no_number_is_given_twice(system: Graves) -> None:
    """Prices and plans that began meanwhile, which a price of now cannot; what was written since is
    let be. Again it adds nothing, and triggers guard as before."""
    administration = Administration(system.engine)
    await administration.register_model(
        ACTOR, Model(id="m", context_tokens=2048, max_output_tokens=512)
    )
    await administration.create_tenant(ACTOR, "acme", "Acme")
    for pico, plan in ((10, None), (20, "gold"), (30, None)):
        await administration.set_price(ACTOR, a_price(pico, plan))
    await administration.set_plan(ACTOR, "acme", "gold")
    await look(system)
    before = await rows(system)
    await lose(system, 1)
    await look(system)
    await administration.set_price(ACTOR, a_price(40))
    now = await rows(system)
    assert [row["id"] for row in now["price_entry"]] == [1, 4]  # type: ignore[index]
    remembered = await PricePast(system.redis).rows()
    async with system.engine.connect() as db:
        lost = await lost_rows(db, remembered)
    assert lost == {"price_entry": [2, 3], "plan_member": [1]}
    nothing: dict[str, list[int]] = {"price_entry": [], "plan_member": []}
    for expected in (lost, nothing):
        assert await administration.put_prices_back(ACTOR, remembered) == expected
        after = await rows(system)
        assert after["plan_member"] == before["plan_member"]
        assert after["price_entry"] == before["price_entry"] + now["price_entry"][1:]
    guards = await query(
        system.engine,
        "SELECT tgname, tgenabled = 'O' FROM pg_trigger WHERE tgname LIKE '%refuse_past'",
    )
    assert sorted(guards) == [("plan_member_refuse_past", True), ("price_refuse_past", True)]


async def test_the_first_price_after_a_restore_takes_no_lost_number(system: Graves) -> None:
    """Before any gateway has looked; and a plan. With no Redis to ask the number is another's now,
    which is told as a loss."""
    administration = Administration(system.engine, redis=system.redis)
    await administration.register_model(
        ACTOR, Model(id="m", context_tokens=2048, max_output_tokens=512)
    )
    await administration.create_tenant(ACTOR, "acme", "Acme")
    for pico, plan in ((10, "gold"), (20, None)):
        await administration.set_price(ACTOR, a_price(pico, plan))
    await administration.set_plan(ACTOR, "acme", "gold")
    await look(system)
    remembered = await PricePast(system.redis).rows()
    await lose(system, 1)
    assert (await administration.set_price(ACTOR, a_price(40))).id == 3
    await administration.set_plan(ACTOR, "acme", "gold")
    assert [row["id"] for row in (await rows(system))["plan_member"]] == [2]  # type: ignore[index]
    await lose(system, 1)
    assert (await Administration(system.engine).set_price(ACTOR, a_price(40))).id == 2
    async with system.engine.connect() as db:
        lost = await lost_rows(db, remembered)
    assert lost == {"price_entry": [2], "plan_member": [1]}
    await PricePast(system.redis).forget(lost)
    assert [*(await PricePast(system.redis).rows())["price_entry"]] == [1]
    assert (await PricePast(system.redis).newest())["price_entry"] == 2
