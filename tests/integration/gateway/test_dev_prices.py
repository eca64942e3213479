"""`weir dev` prices what it serves, once, and nothing else."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from hosted_examples import a_provider

from billing.domain.price_book import Price
from gateway.adapters.postgres import async_engine
from gateway.administration import Administration, NewPrice
from gateway.dev_hosted import NONE, SIMULATED
from gateway.dev_prices import seed_prices
from gateway.domain.tenant import Model

MODELS = [Model(id=each, context_tokens=2048, max_output_tokens=512) for each in ("m", "n")]


@pytest.fixture
async def administration(database_url: str) -> AsyncIterator[Administration]:
    """On a fresh database that knows both models, and a simulated provider of the first."""
    engine = async_engine(database_url)
    made = Administration(engine)
    for model in MODELS:
        await made.register_model("weir dev", model)
    await made.register_hosted_provider("weir dev", a_provider(SIMULATED))
    yield made
    await engine.dispose()


async def stored(administration: Administration) -> list[Price]:
    """All prices in the order in which they were written."""
    return (await administration.list_prices()).items[::-1]


def lines(prices: list[Price]) -> list[tuple[str, str, str]]:
    return [(price.model, price.provider, price.currency) for price in prices]


async def test_every_served_model_has_a_price_once(administration: Administration) -> None:
    """In USD, at our own workers and at the simulated provider where that serves it; a second
    start adds none."""
    for _ in range(2):
        await seed_prices(administration, MODELS, hosted=SIMULATED)
        found = await stored(administration)
        assert lines(found) == [
            ("m", "self", "USD"),
            ("n", "self", "USD"),
            ("m", "hosted:simulated", "USD"),
        ]
    assert all(price.cached_input_pico for price in found)


@pytest.mark.parametrize("hosted", [NONE, "https://ai.example/v1"])
async def test_a_strangers_price_is_not_made_up(
    administration: Administration, hosted: str
) -> None:
    """B20: what a provider at a URL is resold for somebody has to say."""
    await seed_prices(administration, MODELS, hosted=hosted)
    assert {price.provider for price in await stored(administration)} == {"self"}


async def test_what_is_priced_already_is_left_alone(administration: Administration) -> None:
    """Whatever it costs, and also where it begins later only. Another currency is another line."""
    free: dict[str, Any] = {"input_pico": 0, "cached_input_pico": None, "output_pico": 0}
    dollars = NewPrice(model="m", currency="USD", **free)
    kept = await administration.set_price("me", dollars, effective_from_ms=4_000_000_000_000)
    euros = await administration.set_price("me", NewPrice(model="n", currency="EUR", **free))
    await seed_prices(administration, MODELS, hosted=NONE)
    found = await stored(administration)
    assert found[:2] == [kept, euros]
    assert lines(found[2:]) == [("n", "self", "USD")]
