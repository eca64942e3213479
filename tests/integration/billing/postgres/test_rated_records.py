"""INV-7: the sum over rows in SQL is the sum of rating the same rows in Python, to the pico."""

import random
from collections import Counter
from collections.abc import AsyncIterator

import pytest
from price_examples import a_price
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine
from usage_examples import a_record, an_admission

from billing.domain.policy import is_billable
from billing.domain.price_book import PRICE_PICO_MAX, Price, PriceBook
from billing.domain.rating import rated
from billing.domain.usage_record import Outcome, UsageRecord
from billing.postgres.usage_insert import JournaledRecord, insert_batch
from gateway.adapters.postgres import async_engine

MONTH_MS = 1_795_000_000_000
CURRENCIES = ("USD", "JPY", "KWD")
PROVIDERS = ("self", "hosted:acme-ai")


@pytest.fixture
async def engine(database_url: str) -> AsyncIterator[AsyncEngine]:
    """An engine on a migrated database of this test's own."""
    opened = async_engine(database_url)
    yield opened
    await opened.dispose()


def a_book(chance: random.Random) -> PriceBook:
    """Prices of both providers in three currencies that change every hour, odd to the pico, some of
    a tenant or a class, of reasoning and of requests; the model `free` costs 0, and `new` has no
    price."""
    prices: list[Price] = []
    for model in ("m", "free"):
        for provider in PROVIDERS:
            for currency in CURRENCIES:
                for hour in range(3):
                    top = 0 if model == "free" else PRICE_PICO_MAX // 10**3
                    price = a_price(
                        id=len(prices),
                        model=model,
                        provider=provider,
                        currency=currency,
                        input_pico=chance.randint(0, top),
                        cached_input_pico=chance.choice([None, chance.randint(0, top)]),
                        output_pico=chance.randint(0, top),
                        reasoning_pico=chance.choice([None, chance.randint(0, top)]),
                        request_pico=chance.choice([0, chance.randint(0, top * 10**6)]),
                        tenant_id=chance.choice([None, None, "acme"]),
                        request_class=chance.choice([None, None, "batch"]),
                        effective_from_ms=MONTH_MS + hour * 3_600_000,
                    )
                    prices.append(price)
    return PriceBook(prices)


def some_use(chance: random.Random) -> UsageRecord:
    """A request of any model and outcome in four hours, the first of them before any price."""
    prompt, output = chance.randint(0, 200_000), chance.choice([0, chance.randint(1, 9_000)])
    outcome = chance.choice([each for each in Outcome if each is not Outcome.TAKEN_BACK])
    return a_record(
        an_admission(
            at_ms=MONTH_MS + chance.randint(-3_600_000, 3 * 3_600_000),
            tenant_id=chance.choice(["acme", "globex"]),
            request_class=chance.choice(["interactive", "batch"]),
            model=chance.choice(["m", "free", "new"]),
        ),
        outcome=outcome,
        provider=chance.choice(PROVIDERS),
        prompt_tokens=prompt,
        cached_prompt_tokens=chance.randint(0, prompt),
        output_tokens=output,
        reasoning_tokens=chance.randint(0, output),
        billable=is_billable(outcome, output),
    )


async def test_the_sum_in_sql_is_the_sum_of_rating(engine: AsyncEngine) -> None:
    """By tenant and currency, owed and listed; what is unpriced is counted, not summed."""
    chance = random.Random(20261130)  # noqa: S311 - a fixed draw
    book = a_book(chance)
    rows = [rated(some_use(chance), book, chance.choice(CURRENCIES)) for _ in range(800)]
    async with engine.begin() as db:
        assert await insert_batch(db, [JournaledRecord(row, "gw-1") for row in rows]) == len(rows)
        found = await db.execute(
            text(
                "SELECT tenant_id, currency, sum(cost_pico), sum(list_cost_pico),"
                " count(*) FILTER (WHERE billable AND cost_pico IS NULL)"
                " FROM usage_records GROUP BY 1, 2"
            )
        )
    owed, listed, unpriced = Counter[object](), Counter[object](), Counter[object]()
    for row in rows:
        key = (row.tenant_id, row.currency)
        again = rated(row, book, row.currency)
        assert again == row, "rating is a function of the row and the book alone"
        owed[key] += again.cost_pico or 0
        listed[key] += again.list_cost_pico or 0
        unpriced[key] += again.cost_pico is None
    sums = {(each[0], each[1]): tuple(map(int, each[2:])) for each in found}
    assert sums == {key: (owed[key], listed[key], unpriced[key]) for key in owed}
    assert len(sums) == 6
    assert all(0 < sum_owed < sum_listed for sum_owed, sum_listed, _ in sums.values())
    assert all(count > 0 for _, _, count in sums.values())
