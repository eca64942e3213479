"""The price book's pages: what holds and begins later, a new price, its end, plans, and a file."""

from datetime import UTC, datetime, timedelta

import pytest
from console_visitor import ME, Visitor

from gateway.administration import Administration
from gateway.administration.price_wishes import PriceTexts, read_price
from gateway.domain.account import Role
from gateway.errors import StoreUnavailable

PATH = "/console/money/prices"
PRICE = {"model": "m", "provider": "self", "currency": "USD", "input": "1", "output": "4"}
NASTY = """<script>alert(1)</script>"'"""


async def a_price(visitor: Visitor, **changes: str) -> None:
    texts = PriceTexts(**{"model": "m", "input": "1", "output": "4", **changes})  # type: ignore[arg-type]
    await visitor.administration.set_price(ME, read_price(texts))


async def page_of(visitor: Visitor, path: str = PATH) -> str:
    answer = await visitor.get(path)
    assert answer.status_code == 200, answer.text
    return answer.text


async def test_an_empty_book_says_what_to_do(visitor: Visitor) -> None:
    """And offers it to those who may."""
    await visitor.log_in(Role.FINANCE)
    assert "No prices" in await page_of(visitor)
    assert f'href="{PATH}/new"' in visitor.page


async def test_a_price_is_set_and_shown_with_what_begins_later(visitor: Visitor) -> None:
    """Exact digits, whose it is, since when, and the next one."""
    await visitor.log_in(Role.FINANCE)
    await visitor.get(f"{PATH}/new")
    answer = await visitor.post(PATH, {**PRICE, "cached_input": "0.125"})
    assert (answer.status_code, answer.headers["location"]) == (303, PATH)
    page = await page_of(visitor)
    assert "The list price for m in USD holds from" in page
    assert ">0.125<" in page
    assert ">1.00<" in page
    assert "as output" in page
    later = datetime.now(UTC) + timedelta(days=40)
    begins = f"{later:%Y-%m-%dT%H:%M}"
    await visitor.get(f"{PATH}/new")
    answer = await visitor.post(PATH, {**PRICE, "input": "2", "effective_from": begins})
    assert answer.status_code == 303, answer.text
    page = await page_of(visitor)
    assert f"{later:%Y-%m-%d %H:%M}" in page
    assert "2.00 in, 4.00 out" in page


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"input": "1,5"}, "input"),
        ({"input": ""}, "input"),
        ({"tenant_id": "nobody"}, "tenant_id"),
        ({"model": "nope"}, "model"),
        ({"effective_from": "yesterday"}, "effective_from"),
        ({"request": "-1"}, "request"),
    ],
)
async def test_what_is_wrong_stands_at_its_field(
    visitor: Visitor, changes: dict[str, str], field: str
) -> None:
    """With what was typed, and nothing is written."""
    await visitor.log_in(Role.FINANCE)
    await visitor.get(f"{PATH}/new")
    fields = {**PRICE, "tenant_id": "", "request": "", "effective_from": "", **changes}
    answer = await visitor.post(PATH, fields)
    assert answer.status_code == 422
    assert f'id="f-{field}-error"' in answer.text
    assert 'name="output" type="text" autocomplete="off" inputmode="decimal" value="4"' in (
        answer.text
    )
    assert (await visitor.administration.list_prices()).items == []


async def test_another_price_from_the_same_instant_is_a_conflict(visitor: Visitor) -> None:
    """409, said above the form."""
    await visitor.log_in(Role.FINANCE)
    await visitor.get(f"{PATH}/new")
    begins = {"effective_from": f"{datetime.now(UTC) + timedelta(days=2):%Y-%m-%dT%H:%M}"}
    assert (await visitor.post(PATH, {**PRICE, **begins})).status_code == 303
    answer = await visitor.post(PATH, {**PRICE, **begins, "input": "7"})
    assert answer.status_code == 409
    assert "another price of m begins" in answer.text
    assert 'value="7"' in answer.text


async def test_what_was_typed_stays_while_the_store_is_away(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """503 with the form, not a page that has lost it."""
    await visitor.log_in(Role.FINANCE)
    await visitor.get(f"{PATH}/new")

    async def away(*_: object, **__: object) -> None:
        raise StoreUnavailable("Postgres cannot be reached")

    monkeypatch.setattr(Administration, "set_price", away)
    answer = await visitor.post(PATH, {**PRICE, "input": "0.123456"})
    assert answer.status_code == 503
    assert "Postgres cannot be reached" in answer.text
    assert 'value="0.123456"' in answer.text


async def test_a_tenants_price_is_withdrawn_after_it_was_asked_once_more(visitor: Visitor) -> None:
    """A list price of both classes is not."""
    await visitor.log_in(Role.FINANCE)
    await a_price(visitor, tenant_id="acme", input="0.5")
    await a_price(visitor)
    page = await page_of(visitor)
    assert page.count("Withdraw…") == 1
    address = f"{PATH}/withdraw?model=m&provider=self&currency=USD&tenant_id=acme"
    assert address.replace("&", "&amp;") in page
    assert "the next in line holds" in await page_of(visitor, address)
    line = {"model": "m", "provider": "self", "currency": "USD", "tenant_id": "acme"}
    answer = await visitor.post(f"{PATH}/withdraw", line)
    assert answer.status_code == 303, answer.text
    assert "price of the tenant acme" in await page_of(visitor)
    refused = await visitor.post(f"{PATH}/withdraw", {**line, "tenant_id": ""})
    assert refused.status_code == 422
    assert "cannot be withdrawn" in refused.text


async def test_the_book_is_filtered_and_paged(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each line once, whoever asks for the next page; a filter is kept on it."""
    monkeypatch.setattr("gateway.console.prices.ROWS", 1)
    await visitor.log_in(Role.FINANCE)
    await a_price(visitor)
    await a_price(visitor, plan="gold", input="0.9")
    await a_price(visitor, tenant_id="acme", input="0.5")
    seen = []
    path = PATH
    while True:
        page = await page_of(visitor, path)
        seen += [each for each in ("everybody", ">acme</a>", "plan gold") if each in page]
        if 'rel="next"' not in page:
            break
        path = page.split('" rel="next"')[0].rpartition('href="')[2].replace("&amp;", "&")
    assert sorted(seen) == [">acme</a>", "everybody", "plan gold"]
    assert "plan gold" in await page_of(visitor, f"{PATH}?whose=plan")
    assert ">acme</a>" not in visitor.page
    await visitor.asks_wrongly(f"{PATH}?whose=nobody", field="whose")
    await visitor.asks_wrongly(f"{PATH}?cursor=x")


async def test_a_tenant_is_put_on_a_plan(visitor: Visitor) -> None:
    """One that prices are of; what is wrong stands at its field."""
    await visitor.log_in(Role.FINANCE)
    await a_price(visitor, plan="gold")
    assert "Nobody is on a plan" in await page_of(visitor, f"{PATH}/plans")
    answer = await visitor.post(f"{PATH}/plans", {"tenant_id": "acme", "plan": "silver"})
    assert answer.status_code == 422
    assert 'id="set-f-plan-error"' in answer.text
    assert 'value="silver"' in answer.text
    answer = await visitor.post(f"{PATH}/plans", {"tenant_id": "acme", "plan": "gold"})
    assert answer.status_code == 303, answer.text
    page = await page_of(visitor, f"{PATH}/plans")
    assert "acme is on the plan gold from" in page
    assert f'href="{PATH}?plan=gold"' in page
    await visitor.asks_wrongly(f"{PATH}/plans?cursor=x")
    assert "Nobody is on a plan" not in visitor.page


async def test_a_file_is_looked_at_before_it_is_written(visitor: Visitor) -> None:
    """Pasted or uploaded; faults are told by line, and nothing is written for one."""
    await visitor.log_in(Role.FINANCE)
    await a_price(visitor)
    await visitor.get(f"{PATH}/import")
    text = "model,input,output,plan\nm,1,4,\nm,0.5,2,gold\n"
    answer = await visitor.post(f"{PATH}/import", {"text": text, "kind": ".csv"})
    assert answer.status_code == 200, answer.text
    assert "Nothing is written yet." in answer.text
    assert "Write this price" in answer.text
    assert len((await visitor.administration.list_prices()).items) == 1
    wrong = await visitor.post(
        f"{PATH}/import", {"text": text + "nope,1,4,\nm,x,4,\n", "kind": ".csv"}
    )
    assert wrong.status_code == 422
    assert "line 5" in wrong.text
    assert "m,0.5,2,gold" in wrong.text
    answer = await visitor.post(f"{PATH}/import/write", {"text": text, "kind": ".csv"})
    assert answer.status_code == 303
    assert "1 of 2 prices were written." in await page_of(visitor)
    token = {"csrf": visitor.page.split('name="csrf" value="')[1].split('"')[0]}
    uploaded = await visitor.client.post(
        f"{PATH}/import",
        data={**token, "kind": ".csv", "text": ""},
        files={
            "file": ("p.toml", b'[[price]]\nmodel = "m"\nplan = "tin"\ninput = "3"\noutput = "4"\n')
        },
        headers={"origin": "http://weir.test", "sec-fetch-site": "same-origin"},
    )
    assert uploaded.status_code == 200, uploaded.text
    assert "plan tin" in uploaded.text


async def test_nothing_that_is_typed_becomes_markup(visitor: Visitor) -> None:
    """Names in filters and forms are texts."""
    await visitor.log_in(Role.FINANCE)
    queries = (
        f"?model={NASTY}",
        f"?tenant_id={NASTY}",
        f"/new?plan={NASTY}",
        f"/withdraw?model={NASTY}&currency=USD",
        f"/plans?tenant_id={NASTY}",
    )
    for path in (PATH + query for query in queries):
        page = (await visitor.get(path)).text
        assert "<script>alert" not in page
    for path in (PATH, f"{PATH}/withdraw", f"{PATH}/plans", f"{PATH}/import"):
        answer = await visitor.post(
            path, {**PRICE, "tenant_id": NASTY, "plan": NASTY, "text": NASTY, "kind": ".csv"}
        )
        assert "<script>alert" not in answer.text
        assert "&lt;script&gt;" in answer.text
