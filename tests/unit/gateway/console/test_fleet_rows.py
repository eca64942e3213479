"""Models and providers as the page on the fleet shows them."""

from typing import Any

from billing.domain.price_book import Price, PriceBook
from gateway.console.fleet_rows import hosted_rows, model_rows
from gateway.console.worker_rows import WorkerState
from gateway.domain.hosted import HostedModel, HostedPrice, HostedProvider
from gateway.domain.tenant import Model

NOW_MS = 1_000_000


def price(number: int, **fields: Any) -> Price:
    """A list price of `m` in dollars that holds."""
    return Price(
        **{
            "id": number,
            "model": "m",
            "provider": "self",
            "currency": "USD",
            "input_pico": 1,
            "output_pico": 2,
            "effective_from_ms": number,
            **fields,
        }
    )


def test_a_list_price_is_one_that_everybody_has_now() -> None:
    """Not a plan's or a tenant's, not one that begins later or was withdrawn."""
    book = PriceBook(
        [
            price(1),
            price(2, currency="EUR"),
            price(3, currency="GBP", effective_from_ms=NOW_MS + 1),
            price(4, currency="JPY", tenant_id="acme"),
            price(5, currency="CHF", plan="gold"),
            price(6, currency="PLN"),
            price(7, currency="PLN", withdrawn=True),
            price(8, model="n", provider="hosted:near"),
        ]
    )
    models = [Model(id=name, context_tokens=10, max_output_tokens=5) for name in ("n", "m")]
    workers = [
        {"model": "m", "state": WorkerState.HEALTHY},
        {"model": "m", "state": WorkerState.STARTING},
    ]
    rows = model_rows(models, workers, book, NOW_MS)
    assert [(row["id"], row["workers"], row["healthy"]) for row in rows] == [
        ("m", 2, 1),
        ("n", 0, 0),
    ]
    assert [row["currencies"] for row in rows] == [["EUR", "USD"], []]


def test_a_provider_says_which_of_its_models_have_no_price_there() -> None:
    """Our own price of the model is none of the provider's; its key is not among the fields."""
    book = PriceBook([price(1), price(2, model="n", provider="hosted:near")])
    cost = HostedPrice(input=1, output=2)
    provider = HostedProvider(
        name="near",
        url="https://user@near.test:8443/v1",
        models={"m": HostedModel(name="x", price=cost), "n": HostedModel(name="n")},
        api_key="secret",
    )
    live = [{"name": "near", "circuit": "closed"}, {"name": "removed just now"}]
    (row,) = hosted_rows([provider], live, book, NOW_MS)
    assert (row["unpriced"], row["uncosted"]) == (["m"], ["n"])
    assert row["served"] == [("m", "x"), ("n", "n")]
    assert (row["circuit"], row["has_api_key"]) == ("closed", True)
    assert row["host"] == "near.test:8443"
    assert "secret" not in str(row)
