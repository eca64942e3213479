"""Budgets of a tenant whose time zone or currency is changed in mid-month."""

import asyncio

import msgspec
from budget_gateway import ANSWER, MONTH, USD, a_gateway, left, shown
from memory_gateway import until
from price_examples import a_price
from scripted_engine import Step

from gateway.domain.tenant import Limits

BUDGET = Limits(monthly_budget="5.00")


async def test_another_time_zone_is_another_month() -> None:
    """What the old month had cost is not its: it is summed up anew, and so again on the way back,
    since what was spent meanwhile is in the other one. It is shown by the same name."""
    gateway = a_gateway(ANSWER, ANSWER, ANSWER, tenant=BUDGET)
    assert left(await gateway.post()) == "4.45"
    first = gateway.directory.one_tenant
    assert first is not None
    gateway.months.spent[MONTH] = {"tenant": 2 * USD}
    gateway.directory.one_tenant = msgspec.structs.replace(first, time_zone="Pacific/Kiritimati")
    assert left(await gateway.post()) == "2.45"
    view = await shown(gateway)
    assert (view["spent_this_month"], view["month_resets_at"]) == (
        "2.20", "2027-01-31T10:00:00.000Z",
    )  # fmt: skip
    gateway.months.spent[MONTH] = {"tenant": 3 * USD}
    gateway.directory.one_tenant = first
    assert left(await gateway.post()) == "1.45"
    assert gateway.months.asked == [("acme", MONTH)] * 3


async def test_another_currency_is_another_month() -> None:
    """What was spent of the one is nothing spent of the other."""
    prices = [a_price(input_pico=USD, output_pico=USD, currency=name) for name in ("USD", "JPY")]
    gateway = a_gateway(ANSWER, ANSWER, tenant=Limits(monthly_budget="500"), prices=prices)
    assert left(await gateway.post()) == "445.00"
    first = gateway.directory.one_tenant
    assert first is not None
    gateway.directory.one_tenant = msgspec.structs.replace(first, currency="JPY")
    assert left(await gateway.post()) == "445"
    view = await shown(gateway)
    assert (view["spent_this_month"], view["currency"]) == ("20", "JPY")


async def test_what_ran_when_the_zone_was_changed_is_counted_again() -> None:
    """The store may know only the month that its lease was granted in: the present one is summed
    up again once it has ended, and only then."""
    go_on = asyncio.Event()
    running: list[Step] = [go_on, *ANSWER]
    gateway = a_gateway(running, ANSWER, tenant=BUDGET)
    told: list[tuple[str, str]] = []
    gateway.leases.uncounted = lambda *what: told.append(what)
    task = asyncio.create_task(gateway.serve(gateway.a_client()))
    await until(lambda: gateway.engine.streams)
    first = gateway.directory.one_tenant
    assert first is not None
    gateway.directory.one_tenant = msgspec.structs.replace(first, time_zone="Asia/Tokyo")
    assert (await gateway.post()).status == 200
    assert told == []
    go_on.set()
    await task
    assert told == [("acme", *gateway.ledger.states["acme"].months)]
