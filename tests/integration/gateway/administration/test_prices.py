"""List prices are added, never changed, and never before they can be known."""

import asyncio
import time
from typing import Any

import pytest
from hosted_examples import a_provider
from servers import eventually

from billing.domain.price_book import PRICE_PICO_MAX, Price, PriceBook
from gateway.administration import Administration, NewPrice
from gateway.domain.instants import shown
from gateway.domain.tenant import Model
from gateway.errors import Conflict, Unprocessable

ME = "cli:test"
PRICE: dict[str, Any] = {
    "model": "m",
    "currency": "USD",
    "input_pico": 400_000,
    "cached_input_pico": 100_000,
    "output_pico": 1_600_000,
}
HOUR_MS = 3_600_000


def now_ms() -> int:
    return time.time_ns() // 1_000_000


async def set_price(
    administration: Administration, *, at_ms: int | None = None, **changes: Any
) -> Price:
    """PRICE with changes, from that instant on."""
    wanted = NewPrice(**{**PRICE, **changes})
    return await administration.set_price(ME, wanted, effective_from_ms=at_ms)


async def stored(administration: Administration) -> list[Price]:
    """All prices, the latest written first."""
    return (await administration.list_prices()).items


async def test_a_first_price_holds_at_once(administration: Administration) -> None:
    """So that a budget can be set right after it; one audit entry says what it is."""
    before = now_ms()
    price = await set_price(administration)
    assert before <= price.effective_from_ms <= now_ms()
    assert {name: getattr(price, name) for name in PRICE} == PRICE
    assert price.provider == "self"
    assert await stored(administration) == [price]
    entry = (await administration.list_audit(1)).items[0]
    assert (entry.action, entry.subject_kind, entry.subject_id) == ("price.set", "price", "m")
    assert entry.before is None
    assert entry.after == {
        "id": price.id,
        "model": "m",
        "provider": "self",
        "currency": "USD",
        "tenant_id": None,
        "plan": None,
        "class": None,
        "input": "0.40",
        "cached_input": "0.10",
        "output": "1.60",
        "reasoning": None,
        "request": "0.00",
        "withdrawn": False,
        "effective_from": shown(price.effective_from_ms),
    }


async def test_a_price_that_follows_another_waits_until_all_can_know(
    administration: Administration,
) -> None:
    """Requests that end meanwhile are rated alike on every gateway. The audit entry says what it
    follows."""
    first = await set_price(administration)
    asked_ms = now_ms()
    second = await set_price(administration, input_pico=500_000)
    assert 2_000 <= second.effective_from_ms - asked_ms <= 2_000 + 3_000
    assert await stored(administration) == [second, first]
    entry = (await administration.list_audit(1)).items[0]
    assert (entry.before or {})["id"] == first.id
    assert (entry.after or {})["id"] == second.id


async def test_the_same_again_writes_nothing(administration: Administration) -> None:
    """With or without an instant, also once that has passed."""
    first = await set_price(administration)
    assert await set_price(administration) == first
    at_ms = now_ms() + 2_200
    later = await set_price(administration, at_ms=at_ms, output_pico=0)
    assert await set_price(administration, at_ms=at_ms, output_pico=0) == later
    await eventually(lambda: now_ms() > at_ms, within_s=5)
    assert await set_price(administration, at_ms=at_ms, output_pico=0) == later
    assert await set_price(administration, output_pico=0) == later
    assert await stored(administration) == [later, first]
    assert len((await administration.list_audit()).items) == 3  # with the model's own


async def test_an_instant_holds_one_price(administration: Administration) -> None:
    """Another one is a Conflict, which names the instant, and changes nothing."""
    at_ms = now_ms() + HOUR_MS
    later = await set_price(administration, at_ms=at_ms)
    with pytest.raises(Conflict, match=shown(at_ms)):
        await set_price(administration, at_ms=at_ms, input_pico=1)
    assert await stored(administration) == [later]


async def test_many_at_once_set_one_price(administration: Administration) -> None:
    """V35: eight that say the same are one row; of eight that differ one is first."""
    at_ms = now_ms() + HOUR_MS
    same = await asyncio.gather(*(set_price(administration, at_ms=at_ms) for _ in range(8)))
    assert len({price.id for price in same}) == 1
    others = [set_price(administration, at_ms=at_ms + 1, input_pico=each) for each in range(1, 9)]
    results = await asyncio.gather(*others, return_exceptions=True)
    kinds = sorted(type(each).__name__ for each in results)
    assert kinds == ["Conflict"] * 7 + ["Price"]
    assert len(await stored(administration)) == 2


@pytest.mark.parametrize("ahead_ms", [-365 * 24 * HOUR_MS, -1, 0, 1_000, 10**15])
async def test_a_price_begins_neither_where_another_held_nor_never(
    administration: Administration, ahead_ms: int
) -> None:
    """V46: what was rated at it stays; the price that held is named."""
    held = await set_price(administration, at_ms=now_ms() - 400 * 24 * HOUR_MS)
    with pytest.raises(Unprocessable) as refused:
        await set_price(administration, at_ms=now_ms() + ahead_ms, input_pico=1)
    assert refused.value.param == "effective_from"
    assert (f"the price {held.id} " in refused.value.message) is (ahead_ms < 10**15)
    assert await stored(administration) == [held]


async def test_a_price_may_go_between_two(administration: Administration) -> None:
    """What is planned for later stays planned."""
    first = await set_price(administration)
    planned = await set_price(administration, at_ms=now_ms() + 2 * HOUR_MS, input_pico=3)
    between = await set_price(administration, at_ms=now_ms() + HOUR_MS, input_pico=2)
    book = PriceBook(await stored(administration))
    for at_ms, holds in (
        (first.effective_from_ms, first),
        (between.effective_from_ms - 1, first),
        (between.effective_from_ms, between),
        (planned.effective_from_ms, planned),
    ):
        assert book.price_at("m", "self", "USD", at_ms) == holds


async def test_lines_are_apart(administration: Administration) -> None:
    """A first price of another model, provider or currency follows nothing."""
    await administration.register_model(
        ME, Model(id="n", context_tokens=2048, max_output_tokens=512)
    )
    await administration.register_hosted_provider(ME, a_provider())
    await set_price(administration)
    others: list[dict[str, Any]] = [{"model": "n"}, {"provider": "hosted:acme-ai"}]
    for other in (*others, {"currency": "KWD"}):
        assert (await set_price(administration, **other)).effective_from_ms <= now_ms()
    assert len(await stored(administration)) == 4


@pytest.mark.parametrize(
    ("changes", "param"),
    [
        ({"model": "nope"}, "model"),
        ({"currency": "ZZZ"}, "currency"),
        ({"currency": "usd"}, "currency"),
        ({"provider": "Self"}, "provider"),
        ({"provider": "hosted:"}, "provider"),
        ({"provider": "hosted:nobody"}, "provider"),
        ({"provider": "acme-ai"}, "provider"),
        ({"provider": "hosted:acme-ai", "model": "n"}, "provider"),
        ({"input_pico": -1}, "input"),
        ({"cached_input_pico": PRICE_PICO_MAX + 1}, "cached_input"),
        ({"output_pico": PRICE_PICO_MAX + 1}, "output"),
    ],
)
async def test_what_cannot_be_charged_has_no_price(
    administration: Administration, changes: dict[str, Any], param: str
) -> None:
    """V20, V47: a misspelt name would price nothing and leave what was meant unpriced."""
    await administration.register_hosted_provider(ME, a_provider())
    await administration.register_model(
        ME, Model(id="n", context_tokens=2048, max_output_tokens=512)
    )
    with pytest.raises(Unprocessable) as refused:
        await set_price(administration, **changes)
    assert refused.value.param == param
    assert await stored(administration) == []


async def test_free_and_the_dearest_are_prices(administration: Administration) -> None:
    free = await set_price(administration, input_pico=0, cached_input_pico=None, output_pico=0)
    assert (free.input_pico, free.cached_input_pico, free.output_pico) == (0, None, 0)
    dear = await set_price(administration, currency="IDR", output_pico=PRICE_PICO_MAX)
    assert dear.output_pico == PRICE_PICO_MAX


async def test_prices_are_listed_in_pages(administration: Administration) -> None:
    """Each once, the latest written first, of one model where it is named."""
    await administration.register_model(
        ME, Model(id="n", context_tokens=2048, max_output_tokens=512)
    )
    currencies = ["USD", "EUR", "JPY", "KWD", "GBP"]
    made = [await set_price(administration, currency=each) for each in currencies]
    other = await set_price(administration, model="n")
    for limit in (1, 2, 5, 6):
        seen: list[Price] = []
        cursor: str | None = None
        while True:
            page = await administration.list_prices(limit, cursor)
            seen += page.items
            cursor = page.next_cursor
            if cursor is None:
                break
        assert seen == [other, *made[::-1]]
    assert (await administration.list_prices(model="n")).items == [other]
    assert (await administration.list_prices(model="none")).items == []
    with pytest.raises(Unprocessable):
        await administration.list_prices(cursor="bm90IGFuIGlk")
