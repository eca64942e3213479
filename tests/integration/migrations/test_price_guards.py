"""What the database itself makes of prices, whoever writes them."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.adapters.postgres import async_engine

NEW_PRICE = """INSERT INTO price
        (model, provider, currency, input_pico, cached_input_pico, output_pico, effective_from)
    VALUES (:model, :provider, :currency, :input, :cached, :output,
        date_trunc('milliseconds', clock_timestamp()) + cast(:begins AS text)::interval)
    RETURNING id, changed"""
PRICE: dict[str, Any] = {
    "model": "m",
    "provider": "self",
    "currency": "USD",
    "input": 400_000,
    "cached": None,
    "output": 1_600_000,
    "begins": "1 hour",
}


@pytest.fixture
async def engine(database_url: str) -> AsyncIterator[AsyncEngine]:
    """An engine on a fresh database."""
    made = async_engine(database_url)
    yield made
    await made.dispose()


async def one(engine: AsyncEngine, statement: str, **values: object) -> tuple[Any, ...]:
    """Run a statement in a transaction of its own and return its row."""
    async with engine.begin() as db:
        result = await db.execute(text(statement), values)
        return tuple(result.one()) if result.returns_rows else ()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE price SET input_pico = 1",
        "UPDATE price SET effective_from = effective_from + interval '1 day'",
        "DELETE FROM price",
        "TRUNCATE price_entry",
    ],
)
async def test_a_price_is_never_changed_or_taken_back(engine: AsyncEngine, statement: str) -> None:
    """INV-7: rows that were rated at it stay explained by it."""
    await one(engine, NEW_PRICE, **PRICE)
    with pytest.raises(DBAPIError, match="append-only"):
        await one(engine, statement)
    assert await one(engine, "SELECT input_pico, count(*) FROM price GROUP BY 1") == (400_000, 1)


@pytest.mark.parametrize("begins", ["-6 seconds", "-1 day", "-1 year"])
async def test_no_price_begins_in_the_past(engine: AsyncEngine, begins: str) -> None:
    """Where one held its requests have been rated."""
    await one(engine, NEW_PRICE, **PRICE | {"begins": "-1000 days"})
    with pytest.raises(DBAPIError, match="in the past"):
        await one(engine, NEW_PRICE, **PRICE | {"begins": begins})
    assert await one(engine, "SELECT count(*) FROM price") == (1,)


async def test_a_price_may_begin_now(engine: AsyncEngine) -> None:
    """Who has read the clock may have waited for the lock since."""
    await one(engine, NEW_PRICE, **PRICE | {"begins": "-500 milliseconds"})
    await one(engine, NEW_PRICE, **PRICE | {"begins": "0 seconds"})


async def test_no_two_prices_begin_at_one_instant(engine: AsyncEngine) -> None:
    """Nothing overlaps: which of them holds would be chance. Other lines do not clash."""
    again = NEW_PRICE.replace("clock_timestamp()", "timestamptz '2099-01-01T00:00:00Z'")
    await one(engine, again, **PRICE)
    for other in ({"model": "n"}, {"provider": "hosted:x"}, {"currency": "EUR"}):
        await one(engine, again, **PRICE | other)
    with pytest.raises(DBAPIError, match="price_model_key"):
        await one(engine, again, **PRICE | {"input": 1})


@pytest.mark.parametrize(
    ("changes", "check"),
    [
        ({"provider": "hosted:"}, "price_provider_check"),
        ({"provider": "someone"}, "price_provider_check"),
        ({"currency": "usd"}, "price_currency_check"),
        ({"input": -1}, "price_pico_check"),
        ({"cached": 8 * 10**12 + 1}, "price_pico_check"),
        ({"output": 8 * 10**12 + 1}, "price_pico_check"),
        ({"begins": "1 hour 500 microseconds"}, "price_effective_from_check"),
    ],
)
async def test_no_odd_price_is_stored(
    engine: AsyncEngine, changes: dict[str, Any], check: str
) -> None:
    with pytest.raises(DBAPIError, match=check):
        await one(engine, NEW_PRICE, **PRICE | changes)


async def test_a_price_is_numbered_as_the_directory_is(engine: AsyncEngine) -> None:
    """Gateways that follow `changed` see it, whoever wrote it."""
    tenant = "INSERT INTO tenant (id, name, currency, time_zone) VALUES ('a', 'A', 'USD', 'UTC')"
    (before,) = await one(engine, tenant + " RETURNING changed")
    first, number = await one(engine, NEW_PRICE, **PRICE)
    second, next_number = await one(engine, NEW_PRICE, **PRICE | {"begins": "2 hours"})
    assert before < number < next_number
    assert first < second
