"""List prices on the finance API."""

from typing import Any

import pytest
from admin_api import AdminApi

from gateway.domain.account import Role

BODY: dict[str, Any] = {
    "model": "m",
    "input": "0.4",
    "cached_input": "0.10",
    "output": "1.600",
    "currency": "EUR",
}
SHOWN = {
    "model": "m",
    "provider": "self",
    "currency": "EUR",
    "input": "0.40",
    "cached_input": "0.10",
    "output": "1.60",
}
MORE = {
    "tenant_id": None,
    "plan": None,
    "class": None,
    "reasoning": None,
    "request": "0.00",
    "withdrawn": False,
}
LATER = "2099-01-01T02:00:00.000+02:00"


async def billing(api: AdminApi, method: str, path: str, body: object = None, **more: Any) -> Any:
    """The answer of the finance API."""
    return await api.call(method, path, body, below="/billing/v1", **more)


@pytest.mark.parametrize("role", [Role.ADMIN, Role.FINANCE])
async def test_a_price_is_set_and_listed(api: AdminApi, role: Role) -> None:
    """201 with what is stored, in the form in which it is read; the audit log says who."""
    answer = await billing(api, "POST", "/prices", BODY, role=role)
    price = answer.json()
    assert answer.status_code == 201
    assert {name: price[name] for name in SHOWN} == SHOWN
    assert set(price) == {*SHOWN, *MORE, "id", "effective_from"}
    assert {name: price[name] for name in MORE} == MORE
    later = {**BODY, "cached_input": None, "input": "0", "effective_from": LATER}
    second = (await billing(api, "POST", "/prices", later, role=role)).json()
    assert second["effective_from"] == "2099-01-01T00:00:00.000Z"
    assert (second["input"], second["cached_input"]) == ("0.00", None)
    page = await billing(api, "GET", "/prices?limit=1", role=role)
    assert page.json()["items"] == [second]
    cursor = page.json()["next_cursor"]
    last = await billing(api, "GET", f"/prices?limit=1&model=m&cursor={cursor}", role=role)
    assert last.json() == {"items": [price], "next_cursor": None}
    audit = await api.json("GET", "/audit?subject_kind=price")
    assert [entry["actor"] for entry in audit["items"]] == [f"user:{role}@weir.local"] * 2
    assert (audit["items"][0]["before"], audit["items"][0]["after"]) == (price, second)


@pytest.mark.parametrize("role", [Role.OPERATOR, Role.VIEWER])
@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_what_is_charged_is_finances(api: AdminApi, role: Role, method: str) -> None:
    """Others neither see nor set it: 403, a problem."""
    answer = await billing(api, method, "/prices", BODY if method == "POST" else None, role=role)
    assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
    assert answer.headers["content-type"] == "application/problem+json"
    assert (await billing(api, "GET", "/prices")).json()["items"] == []


async def test_without_a_token_nobody_passes(api: AdminApi) -> None:
    answer = await billing(api, "GET", "/prices", headers={})
    assert answer.status_code == 401
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    ("changes", "param"),
    [
        ({"input": 0.4}, "input"),
        ({"input": "-0.4"}, "input"),
        ({"input": "0.0000001"}, "input"),
        ({"output": "1e3"}, "output"),
        ({"output": None}, "output"),
        ({"output": "8000000.000001"}, "output"),
        ({"cached_input": "free"}, "cached_input"),
        ({"currency": "ZZZ"}, "currency"),
        ({"model": "nope"}, "model"),
        ({"provider": "hosted:nobody"}, "provider"),
        ({"effective_from": "1969-01-01T00:00:00Z"}, "effective_from"),
        ({"effective_from": "2099-01-01T00:00:00"}, "effective_from"),
        ({"effective_from": 4_000_000_000}, "effective_from"),
        ({"reasoning": 1}, "reasoning"),
        ({"request": "-1"}, "request"),
        ({"class": "slow"}, "class"),
        ({"tenant_id": "nobody"}, "tenant_id"),
        ({"plan": "a plan"}, "plan"),
        ({"withdrawn": True}, "input"),
        ({"price": "1.00"}, "price"),
    ],
)
async def test_what_is_no_price_is_refused(
    api: AdminApi, changes: dict[str, Any], param: str
) -> None:
    """B26, V20: 422 that names the field; what is missing is never taken for 0."""
    answer = await billing(api, "POST", "/prices", {**BODY, **changes})
    assert (answer.status_code, answer.json()["param"]) == (422, param), answer.text
    assert (await billing(api, "GET", "/prices")).json()["items"] == []


@pytest.mark.parametrize("absent", ["model", "input", "output"])
async def test_no_price_is_half_said(api: AdminApi, absent: str) -> None:
    """B26: output without a rate is no price."""
    body = {name: BODY[name] for name in BODY if name != absent}
    answer = await billing(api, "POST", "/prices", body)
    assert answer.status_code == 422
    assert absent in answer.text


async def test_an_instant_is_taken_once(api: AdminApi) -> None:
    """The same again is the same price; another one is a 409."""
    planned = {**BODY, "effective_from": LATER}
    first = (await billing(api, "POST", "/prices", planned)).json()
    assert (await billing(api, "POST", "/prices", planned)).json() == first
    other = await billing(api, "POST", "/prices", {**planned, "output": "2.00"})
    assert (other.status_code, other.json()["code"]) == (409, "conflict")
    assert (await billing(api, "GET", "/prices")).json()["items"] == [first]


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=1001", "limit=x", "cursor=%00", "cursor=eA", "model=%00"]
)
async def test_a_page_is_asked_for_well(api: AdminApi, query: str) -> None:
    assert (await billing(api, "GET", f"/prices?{query}")).status_code == 422


async def test_a_tenant_is_put_on_a_plan_that_has_prices(api: AdminApi) -> None:
    """Prices of a plan, of a tenant and of a class stand beside the list's; a tenant's end is a
    row, too."""
    listed = (await billing(api, "POST", "/prices", BODY)).json()
    of_plan = await billing(api, "POST", "/prices", {**BODY, "plan": "gold", "request": "0.001"})
    assert of_plan.status_code == 201, of_plan.text
    assert (of_plan.json()["plan"], of_plan.json()["request"]) == ("gold", "0.001")
    tenant = {"id": "gilded", "name": "Gilded", "currency": "EUR"}
    assert (await api.call("POST", "/tenants", tenant)).status_code == 201
    wrong = await billing(api, "POST", "/plans", {"tenant_id": "gilded", "plan": "silver"})
    assert (wrong.status_code, wrong.json()["param"]) == (422, "plan")
    nobody = await billing(api, "POST", "/plans", {"tenant_id": "nobody", "plan": "gold"})
    assert (nobody.status_code, nobody.json()["param"]) == (422, "tenant_id")
    member = await billing(api, "POST", "/plans", {"tenant_id": "gilded", "plan": "gold"})
    assert (member.status_code, member.json()["plan"]) == (201, "gold")
    page = await billing(api, "GET", "/plans?tenant_id=gilded")
    assert page.json()["items"] == [member.json()]
    own = {**BODY, "tenant_id": "gilded", "class": "batch", "reasoning": "3.00"}
    own_price = (await billing(api, "POST", "/prices", own)).json()
    assert (own_price["class"], own_price["reasoning"]) == ("batch", "3.00")
    line = {name: own[name] for name in ("model", "currency", "tenant_id", "class")}
    ended = (await billing(api, "POST", "/prices", {**line, "withdrawn": True})).json()
    assert (ended["input"], ended["request"], ended["withdrawn"]) == (None, None, True)
    found = await billing(api, "GET", "/prices?tenant_id=gilded")
    assert found.json()["items"] == [ended, own_price]
    assert (await billing(api, "GET", "/prices?plan=gold")).json()["items"] == [of_plan.json()]
    everything = (await billing(api, "GET", "/prices")).json()["items"]
    assert everything == [ended, own_price, of_plan.json(), listed]
    audit = await api.json("GET", "/audit?limit=1")
    assert (audit["items"][0]["action"], audit["items"][0]["before"]) == (
        "price.withdraw",
        own_price,
    )


@pytest.mark.parametrize("role", [Role.OPERATOR, Role.VIEWER])
async def test_plans_are_finances(api: AdminApi, role: Role) -> None:
    for method, body in (("GET", None), ("POST", {"tenant_id": "a", "plan": None})):
        assert (await billing(api, method, "/plans", body, role=role)).status_code == 403
