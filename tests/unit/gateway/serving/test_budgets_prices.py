"""Budgets of a gateway that may not know the newest prices, where Postgres was not seen."""

from budget_gateway import ANSWER, CENT, a_gateway, left, shown
from memory_gateway import error_of
from memory_ports import START_MS
from scripted_engine import Step

from billing.domain.usage_record import Outcome
from gateway.domain.scopes import scopes_of
from gateway.domain.tenant import Limits
from gateway.errors import WorkerFailed

BUDGET = Limits(monthly_budget="1.00")


async def test_an_old_price_admits_nothing_on_a_budget() -> None:
    """503 at once, nothing held; served again once the prices are read."""
    gateway = a_gateway(ANSWER, tenant=BUDGET)
    gateway.directory.prices_known_until_ms = START_MS
    client = await gateway.post()
    assert (client.status, error_of(client)["code"]) == (503, "admission_unavailable")
    assert "prices are being read" in error_of(client)["message"]
    gateway.assert_nothing_admitted()
    gateway.directory.prices_known_until_ms = START_MS + 1
    assert left(await gateway.post()) == "0.45"


async def test_nor_on_a_budget_that_only_the_store_has_heard_of() -> None:
    """Without it the request would be served, and unpriced."""
    gateway = a_gateway(ANSWER)
    gateway.directory.prices_known_until_ms = START_MS
    newer = a_gateway(tenant=BUDGET, limits_version=9).directory.one_tenant
    assert newer is not None
    gateway.months.spent["2027-01"] = {}
    (key,) = gateway.directory.keys
    await gateway.ledger.observe("acme", scopes_of(newer, key, "m"))
    client = await gateway.post()
    assert (client.status, error_of(client)["code"]) == (503, "admission_unavailable")
    assert "prices are being read" in error_of(client)["message"]
    gateway.assert_nothing_admitted()


async def test_what_ran_then_counts_as_the_most_that_it_can_have_cost() -> None:
    """Until somebody rates it: 0.55 was reserved, 20 tokens were used, nobody knows at what."""

    def postgres_goes_away() -> None:
        gateway.directory.prices_known_until_ms = START_MS

    script: list[Step] = [postgres_goes_away, *ANSWER]
    gateway = a_gateway(script, tenant=BUDGET)
    assert (await gateway.post()).status == 200
    record = gateway.assert_one_of_each(Outcome.COMPLETED)
    assert (record.cost_pico, record.price_id) == (None, None)
    assert gateway.ledger.costs == [(record.request_id.hex, 55 * CENT)]
    assert (await shown(gateway))["remaining_this_month"] == "0.45"


async def test_what_nobody_pays_costs_nothing_then_too() -> None:
    """A worker that dies midway: nothing is owed at whatever price."""

    def postgres_goes_away() -> None:
        gateway.directory.prices_known_until_ms = START_MS

    gateway = a_gateway([ANSWER[0], postgres_goes_away, WorkerFailed("gone")], tenant=BUDGET)
    await gateway.post(stream=True)
    record = gateway.assert_one_of_each(Outcome.WORKER_FAILED)
    assert record.cost_pico == 0
    assert (await shown(gateway))["remaining_this_month"] == "1.00"
    assert gateway.ledger.costs == [(record.request_id.hex, 0)]
