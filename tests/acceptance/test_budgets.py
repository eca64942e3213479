"""Monthly budgets over two gateways: held to the pico, and shown as they are within a second."""

import time
from collections import Counter
from decimal import Decimal

import pytest
from weir_dev import Json, WeirDev, together

SHOWN_WITHIN_S = 1.0
"""Asserted at three times that."""
PRICE = {"currency": "SEK", "input": "10000", "output": "10000"}
"""0.01 a token."""


@pytest.fixture
def budgeted(simulated: WeirDev) -> WeirDev:
    """A tenant that pays 0.01 SEK for a token, and may spend 20.00 a month."""
    patched = simulated.admin("PATCH", f"/admin/v1/tenants/{simulated.tenant}", {"currency": "SEK"})
    assert patched.status == 200, patched.raw
    prices = simulated.gateway() + "/billing/v1/prices"
    token = simulated.ready["users"]["finance"]["token"]
    known = simulated.request("GET", prices + "?limit=1000", token=token).json["items"]
    if not any(price["currency"] == "SEK" for price in known):
        body = {"model": simulated.model, **PRICE}
        assert simulated.request("POST", prices, body, token=token).status == 201
    simulated.set_limits(monthly_budget="20.00")
    return simulated


def shown(system: WeirDev, gateway: int) -> Json:
    """What one gateway says of the tenant's money."""
    view: Json = system.limits(gateway=gateway)["tenant"]
    return view


async def test_b06_every_gateway_shows_what_was_spent(budgeted: WeirDev) -> None:
    """B06, R18: the row's own cost, on the gateway that served and on the other; what remains
    decreases by what each call used, in the headers too."""
    left = Decimal("20.00")
    for index in range(4):
        reply = budgeted.chat(f"Story {index}", gateway=index, max_tokens=8, stream=index % 2 == 0)
        assert reply.status == 200, reply.raw
        assert Decimal(reply.headers["x-ratelimit-remaining-budget"]) < left
        row = await budgeted.record(reply.headers["x-request-id"])
        left -= Decimal(row["cost_pico"]) / 10**12
        for gateway in range(2):
            deadline = time.monotonic() + 3 * SHOWN_WITHIN_S
            while True:
                view = shown(budgeted, gateway)
                if Decimal(view["remaining_this_month"] or 0) == left:
                    break
                assert time.monotonic() < deadline, view
            assert Decimal(view["spent_this_month"]) == Decimal("20.00") - left
            assert view["reserved_this_month"] == "0.00"
        live = budgeted.admin("GET", "/admin/v1/live").json["tenants"]
        (own,) = (each for each in live if each["id"] == budgeted.tenant)
        assert Decimal(own["remaining_this_month"]) == left


def test_r26_no_budget_is_passed(budgeted: WeirDev) -> None:
    """R26, R27, M10: forty at once over two gateways, each worth up to 1.20, and 5.00: what is
    admitted fits, the rest is told so; at rest nothing is reserved."""
    budgeted.set_limits(monthly_budget="5.00")
    replies = together(40, lambda i: budgeted.chat(f"Story {i}", max_tokens=80, gateway=i))
    counts = Counter(reply.status for reply in replies)
    assert set(counts) == {200, 429}
    for refused in (reply for reply in replies if reply.status == 429):
        assert refused.error["code"] == "insufficient_quota"
        assert refused.headers["x-should-retry"] == "false"
        assert "budget of the tenant is 5.00 SEK" in refused.error["message"]
    view = shown(budgeted, 0)
    assert Decimal(view["spent_this_month"]) <= Decimal("5.00")
    assert view["reserved_this_month"] == "0.00"


def test_b04_a_budget_is_taken_away(budgeted: WeirDev) -> None:
    """B04: null is no limit, at once."""
    budgeted.set_limits(monthly_budget="0.01")
    assert budgeted.chat().error["code"] == "insufficient_quota"
    budgeted.set_limits(monthly_budget=None)
    assert budgeted.chat().status == 200
