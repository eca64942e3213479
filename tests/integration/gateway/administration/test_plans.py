"""Plans: who is on which, and prices of tenants, plans and classes as they are written."""

import asyncio
import time
from typing import Any

import pytest

from billing.domain.price_book import PriceBook
from gateway.administration import Administration, NewPrice
from gateway.administration.price_wishes import withdrawal
from gateway.domain.instants import shown
from gateway.domain.tenant import Limits
from gateway.errors import Conflict, Unprocessable

ME = "cli:test"
HOUR_MS = 3_600_000
PRICE: dict[str, Any] = {
    "model": "m",
    "currency": "USD",
    "input_pico": 400_000,
    "cached_input_pico": None,
    "output_pico": 1_600_000,
}


def now_ms() -> int:
    return time.time_ns() // 1_000_000


@pytest.fixture
async def priced(administration: Administration) -> Administration:
    """With the tenants acme and globex, and a plan that has a price."""
    for tenant_id in ("acme", "globex"):
        await administration.create_tenant(ME, tenant_id, name=tenant_id)
    await administration.set_price(ME, NewPrice(**PRICE, plan="gold"))
    return administration


async def test_a_tenant_goes_to_a_plan_once_all_can_know(priced: Administration) -> None:
    """2 s from now; the same again writes nothing, and going to none is a row, too."""
    asked_ms = now_ms()
    member = await priced.set_plan(ME, "acme", "gold")
    assert 2_000 <= member.effective_from_ms - asked_ms <= 5_000
    entry = (await priced.list_audit(1)).items[0]
    assert (entry.action, entry.subject_id, entry.before) == ("tenant.plan", "acme", None)
    assert entry.after == {
        "tenant_id": "acme",
        "plan": "gold",
        "effective_from": shown(member.effective_from_ms),
    }
    at_ms = now_ms() + HOUR_MS
    assert await priced.set_plan(ME, "acme", "gold", effective_from_ms=at_ms) == member
    left = await priced.set_plan(ME, "acme", None, effective_from_ms=at_ms)
    assert left.plan is None
    with pytest.raises(Conflict, match=shown(at_ms) or ""):
        await priced.set_plan(ME, "acme", "gold", effective_from_ms=at_ms)
    assert (await priced.set_plan(ME, "globex", None)).plan is None
    assert (await priced.list_plans()).items == [left, member]
    assert (await priced.list_plans(tenant_id="globex")).items == []


@pytest.mark.parametrize(
    ("tenant_id", "plan", "ahead_ms", "raised"),
    [
        ("nobody", "gold", None, Unprocessable),
        ("acme", "silver", None, Unprocessable),
        ("acme", "gold", 0, Unprocessable),
        ("acme", "gold", -HOUR_MS, Unprocessable),
        ("acme", "gold", 10**15, Unprocessable),
    ],
)
async def test_no_plan_is_without_prices_or_in_the_past(
    priced: Administration, tenant_id: str, plan: str, ahead_ms: int | None, raised: type[Exception]
) -> None:
    at_ms = None if ahead_ms is None else now_ms() + ahead_ms
    with pytest.raises(raised):
        await priced.set_plan(ME, tenant_id, plan, effective_from_ms=at_ms)
    assert (await priced.list_plans()).items == []


async def test_many_at_once_are_one_row(priced: Administration) -> None:
    """V35."""
    at_ms = now_ms() + HOUR_MS
    made = await asyncio.gather(
        *(priced.set_plan(ME, "acme", "gold", effective_from_ms=at_ms) for _ in range(8))
    )
    assert len(set(made)) == 1
    assert (await priced.list_plans()).items == made[:1]


@pytest.mark.parametrize(
    ("line", "waits"),
    [
        ({"tenant_id": "acme"}, True),
        ({"plan": "silver"}, True),
        ({"request_class": "batch"}, True),
        ({"tenant_id": "acme", "request_class": "batch"}, True),
        ({"currency": "EUR", "plan": "silver"}, False),
    ],
)
async def test_what_takes_the_place_of_the_list_price_waits(
    priced: Administration, line: dict[str, str], waits: bool
) -> None:
    """Who is to pay another price pays it once every gateway knows of it, and never for the
    past."""
    await priced.set_price(ME, NewPrice(**PRICE))
    asked_ms = now_ms()
    wanted = NewPrice(**{**PRICE, "input_pico": 1, **line})
    if waits:
        with pytest.raises(Unprocessable, match="holds meanwhile"):
            await priced.set_price(ME, wanted, effective_from_ms=asked_ms - HOUR_MS)
    price = await priced.set_price(ME, wanted)
    assert (price.effective_from_ms - asked_ms >= 2_000) is waits


async def test_an_end_waits_too_and_lets_the_list_hold(priced: Administration) -> None:
    """Twice is once; there is nothing to end where nothing is."""
    listed = await priced.set_price(ME, NewPrice(**PRICE))
    line = {"model": "m", "currency": "USD", "tenant_id": "acme"}
    with pytest.raises(Unprocessable, match="no such price"):
        await priced.set_price(ME, withdrawal(**line))
    own = await priced.set_price(ME, NewPrice(**{**PRICE, "tenant_id": "acme", "input_pico": 1}))
    at_ms = own.effective_from_ms + HOUR_MS
    ended = await priced.set_price(ME, withdrawal(**line), effective_from_ms=at_ms)
    assert await priced.set_price(ME, withdrawal(**line), effective_from_ms=at_ms) == ended
    book = PriceBook((await priced.list_prices()).items)
    for instant, holds in ((at_ms - 1, own), (at_ms, listed)):
        assert book.price_at("m", "self", "USD", instant, tenant_id="acme") == holds
    with pytest.raises(Unprocessable, match="cannot be withdrawn"):
        await priced.set_price(ME, withdrawal(model="m", currency="USD"))


async def test_a_tenants_price_is_in_its_own_currency(priced: Administration) -> None:
    """Another one would price nothing."""
    with pytest.raises(Unprocessable, match="billed in USD") as refused:
        await priced.set_price(ME, NewPrice(**{**PRICE, "tenant_id": "acme", "currency": "EUR"}))
    assert refused.value.param == "currency"


async def test_a_budget_may_rest_on_a_tenants_own_prices(priced: Administration) -> None:
    """B27: on those of both classes; what another tenant or one class pays is no price for it."""
    budget = Limits(monthly_budget="1.00")
    own = {**PRICE, "tenant_id": "acme"}
    await priced.set_price(ME, NewPrice(**own, request_class="batch"))
    with pytest.raises(Unprocessable, match="no price"):
        await priced.put_tenant_limits(ME, "acme", budget)
    await priced.set_price(ME, NewPrice(**own, request_class="interactive"))
    await priced.put_tenant_limits(ME, "acme", budget)
    with pytest.raises(Unprocessable, match="no price"):
        await priced.put_tenant_limits(ME, "globex", budget)
