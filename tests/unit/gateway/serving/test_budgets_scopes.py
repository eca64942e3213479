"""Budgets of tenants, plans and classes with prices of their own, of reasoning and of requests."""

from typing import Any

import pytest
from budget_gateway import ANSWER, CENT, PRICE, a_gateway, left
from memory_gateway import error_of
from msgspec.structs import replace

from billing.domain.price_book import Membership, PriceBook
from billing.domain.usage_record import Outcome
from gateway.domain.tenant import Limits

BUDGET = Limits(monthly_budget="2.00")
BATCH = {"service_tier": "flex"}
OWN = replace(PRICE, id=8, tenant_id="acme", input_pico=2 * CENT, output_pico=2 * CENT)


def scoped(**changes: Any) -> Any:
    """A price of 3 cents a token for some, beside the list's."""
    return replace(PRICE, **{"id": 9, "input_pico": 3 * CENT, "output_pico": 3 * CENT} | changes)


async def test_the_tenants_own_price_is_reserved_and_charged() -> None:
    """55 tokens at most, at 2 cents: another tenant's price is nothing to it."""
    gateway = a_gateway(ANSWER, tenant=BUDGET, prices=[PRICE, OWN, scoped(tenant_id="globex")])
    assert left(await gateway.post()) == "0.90"
    record = gateway.assert_one_of_each(Outcome.COMPLETED)
    assert (record.price_id, record.cost_pico) == (8, 40 * CENT)


async def test_that_of_its_plan_is_where_it_has_none() -> None:
    gateway = a_gateway(ANSWER, tenant=BUDGET)
    member = Membership(tenant_id="acme", plan="gold", effective_from_ms=0)
    gateway.directory.prices = PriceBook([PRICE, scoped(plan="gold")], [member])
    assert left(await gateway.post()) == "0.35"
    assert gateway.assert_one_of_each(Outcome.COMPLETED).cost_pico == 60 * CENT


@pytest.mark.parametrize(("body", "price_id"), [(BATCH, 9), ({}, 7)])
async def test_a_class_pays_its_own(body: dict[str, str], price_id: int) -> None:
    """The class that it is served in: an interactive key may ask for batch."""
    prices = [PRICE, scoped(request_class="batch", input_pico=0, output_pico=0)]
    gateway = a_gateway(ANSWER, tenant=BUDGET, prices=prices)
    assert left(await gateway.post(**body)) == ("2.00" if body else "1.45")
    record = gateway.assert_one_of_each(Outcome.COMPLETED)
    assert record.price_id == price_id


async def test_the_price_of_a_request_is_reserved_too() -> None:
    """0.55 and 0.10; what was used is 0.20 and 0.10."""
    gateway = a_gateway(ANSWER, tenant=BUDGET, prices=[replace(PRICE, request_pico=10 * CENT)])
    assert left(await gateway.post()) == "1.35"
    assert gateway.assert_one_of_each(Outcome.COMPLETED).cost_pico == 30 * CENT


async def test_a_budget_below_the_price_of_a_request_admits_nothing() -> None:
    """However few tokens it may use."""
    dear = [replace(PRICE, request_pico=300 * CENT)]
    gateway = a_gateway(ANSWER, tenant=BUDGET, prices=dear)
    client = await gateway.post(max_tokens=1)
    assert (client.status, error_of(client)["code"]) == (429, "insufficient_quota")
    assert "may fit" not in error_of(client)["message"]


async def test_output_is_reserved_as_if_all_of_it_were_reasoning() -> None:
    """5 of prompt at 1 cent, 50 at 3: 1.55; none of it was, so 0.20."""
    gateway = a_gateway(ANSWER, tenant=BUDGET, prices=[replace(PRICE, reasoning_pico=3 * CENT)])
    assert left(await gateway.post()) == "0.45"
    assert gateway.assert_one_of_each(Outcome.COMPLETED).cost_pico == 20 * CENT


async def test_no_price_for_this_class_is_none() -> None:
    """B20, V47: 503 where a budget is in force, whatever the other class costs."""
    gateway = a_gateway(ANSWER, tenant=BUDGET, prices=[scoped(request_class="batch")])
    client = await gateway.post()
    assert client.status == 503
    assert "has no price" in error_of(client)["message"]
    assert (await gateway.post(**BATCH)).status == 200
