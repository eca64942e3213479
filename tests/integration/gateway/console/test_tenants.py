"""Tenants in the console: found, made, billed, suspended, and limited many at a time."""

import asyncio
import re
from typing import Any

import pytest
from console_visitor import ME, Visitor

from gateway.administration.audit import AuditFilters
from gateway.console import limit_pages, tenants
from gateway.domain.account import Role
from gateway.domain.tenant import Limits

SCRIPT = """<script>alert(1)</script>"'"""
NEW = {
    "id": "initech",
    "name": "Initech",
    "currency": "EUR",
    "time_zone": "Europe/Berlin",
    "max_sequences": "4",
    "none.tpm": "1",
    "none.rpm": "1",
    "max_queued": "64",
    "max_wait_ms": "10000",
    "weight": "1",
    "none.max_prompt_tokens": "1",
    "none.max_output_tokens": "1",
    "none.monthly_budget": "1",
    "cache_isolation": "tenant",
}


async def test_tenants_are_found_by_a_part_of_their_id_or_name(visitor: Visitor) -> None:
    """Whatever its case; what stands for anything in a pattern stands for itself."""
    for tenant_id, name in (("initech", "Initech"), ("hooli", "Hooli 100 %"), ("umbrella", "U_A")):
        await visitor.administration.create_tenant(ME, tenant_id, name)
    await visitor.administration.update_tenant(ME, "hooli", suspended=True)
    await visitor.log_in(Role.VIEWER)
    for query, found in (
        ("search=ITE", {"initech"}),
        ("search=100 %25", {"hooli"}),
        ("search=_", {"umbrella"}),
        ("state=suspended", {"hooli"}),
        ("state=active&search=i", {"initech"}),
        ("search=nobody", set()),
    ):
        page = (await visitor.get(f"/console/tenants?{query}")).text
        every = ("acme", "initech", "hooli", "umbrella")
        assert {each for each in every if f'/console/tenants/{each}"' in page} == found, query
    assert "No tenant is found" in page
    assert "Create a tenant" not in page


async def test_what_cannot_be_asked_is_said_in_words(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not as programs are told it."""
    real = limit_pages.use_of

    async def use_of(*given: Any) -> dict[str, Any]:
        return {**await real(*given), "degraded": ["redis", "queue:m"]}

    monkeypatch.setattr(tenants, "use_of", use_of)
    await visitor.log_in()
    page = (await visitor.get("/console/tenants/acme")).text
    assert "Redis and the queue of m cannot be asked; what is used" in page


async def test_a_long_list_goes_on_where_it_ended(visitor: Visitor) -> None:
    """The filters go on with it."""
    for number in range(52):
        await visitor.administration.create_tenant(ME, f"t{number:02}", "T")
    await visitor.log_in()
    page = (await visitor.get("/console/tenants?search=t")).text
    assert 'href="/console/tenants/t49"' in page
    assert 'href="/console/tenants/t50"' not in page
    link = page.split('rel="next"')[0].rpartition('href="')[2].partition('"')[0]
    page = (await visitor.get(link.replace("&amp;", "&"))).text
    assert 'href="/console/tenants/t51"' in page
    assert 'href="/console/tenants/t49"' not in page
    assert 'href="/console/tenants/acme"' not in page


async def test_a_tenant_is_made_with_its_limits(visitor: Visitor) -> None:
    """What is wrong stands at its field and nothing is made; then it is."""
    await visitor.log_in()
    await visitor.get("/console/tenants/-/new")
    wrong = NEW | {"id": "Not One", "max_sequences": "many"}
    answer = await visitor.post("/console/tenants", wrong)
    assert answer.status_code == 422
    assert 'id="f-max_sequences-error"' in answer.text
    assert 'value="many"' in answer.text
    answer = await visitor.post("/console/tenants", NEW | {"id": "Not One"})
    assert answer.status_code == 422
    assert 'id="f-id-error"' in answer.text
    answer = await visitor.post("/console/tenants", NEW | {"id": "acme"})
    assert (answer.status_code, "exists already" in answer.text) == (422, True)
    answer = await visitor.post("/console/tenants", NEW)
    assert (answer.status_code, answer.headers["location"]) == (303, "/console/tenants/initech")
    made = await visitor.administration.get_tenant("initech")
    assert (made.currency, made.limits.max_sequences, made.limits.tpm) == ("EUR", 4, None)


async def test_a_tenant_is_billed_as_its_form_says(visitor: Visitor) -> None:
    """What a field refuses is said there; lines of the address are kept."""
    await visitor.log_in()
    await visitor.get("/console/tenants/acme/profile")
    fields = {"name": "Acme", "currency": "USD", "time_zone": "UTC", "address": "A 1\nB 2"}
    for name, value in (("country", "Germany"), ("tax_rate", "190"), ("payment_terms_days", "999")):
        answer = await visitor.post("/console/tenants/acme/profile", fields | {name: value})
        assert answer.status_code == 422
        assert f'id="f-{name}-error"' in answer.text, name
        assert f'value="{value}"' in answer.text
    answer = await visitor.post("/console/tenants/acme/profile", fields | {"tax_rate": "19"})
    assert answer.status_code == 303
    profile = (await visitor.administration.get_tenant("acme")).billing_profile
    assert (profile.address, profile.tax_rate) == (("A 1", "B 2"), "19")
    assert "A 1<br>B 2" in (await visitor.get("/console/tenants/acme")).text


async def test_a_tenant_is_suspended_and_resumed(visitor: Visitor) -> None:
    """The page says before what will happen, and afterwards which gateways go by it."""
    await visitor.log_in()
    page = (await visitor.get("/console/tenants/acme")).text
    assert "Its keys are refused with 401 within a second" in page
    answer = await visitor.post("/console/tenants/acme/suspend")
    assert (answer.status_code, answer.headers["location"]) == (303, "/console/tenants/acme")
    page = (await visitor.get("/console/tenants/acme")).text
    assert "Acme is suspended: its keys are refused." in page
    assert "go by it" in page or "goes by it" in page
    assert "This tenant is suspended." in page
    assert (await visitor.administration.get_tenant("acme")).suspended
    await visitor.post("/console/tenants/acme/resume")
    assert not (await visitor.administration.get_tenant("acme")).suspended


async def test_money_is_shown_only_to_who_may_see_it(visitor: Visitor) -> None:
    """What is spent, invoices and the plan; controls only to who may use them."""
    await visitor.log_in(Role.VIEWER)
    page = (await visitor.get("/console/tenants/acme")).text
    for hidden in ("Spent and held", "Invoices", "Plan", "Suspend", "Make a key", "/profile"):
        assert hidden not in page, hidden
    assert "Sequences running" in page
    other = Visitor(visitor.client, visitor.administration)
    await other.post("/console/logout")
    await visitor.log_in(Role.FINANCE)
    page = (await visitor.get("/console/tenants/acme")).text
    for shown in ("Spent and held", "Invoices", "Plan"):
        assert shown in page, shown


async def test_a_name_is_text_everywhere(visitor: Visitor) -> None:
    """Whatever it looks like."""
    await visitor.administration.create_tenant(ME, "evil", SCRIPT)
    key, _ = await visitor.administration.create_key(ME, "evil", SCRIPT, "batch")
    await visitor.log_in()
    for path in (
        "",
        "/-/limits?tenant=evil",
        "/evil",
        "/evil/now",
        "/evil/profile",
        "/evil/limits",
        "/evil/keys",
        "/evil/keys/new",
        f"/evil/keys/{key.id}",
        f"/evil/keys/{key.id}/limits",
        "?search=<script>alert(1)",
    ):
        answer = await visitor.get(f"/console/tenants{path}")
        assert answer.status_code == 200, path
        assert "<script>alert" not in answer.text, path


async def test_one_limit_of_many_tenants_is_set(visitor: Visitor) -> None:
    """B11: shown before it is saved; each has its own entry of the audit log, all of one change."""
    await visitor.administration.create_tenant(ME, "globex", "Globex", Limits(tpm=500, rpm=9))
    await visitor.log_in()
    page = (await visitor.get("/console/tenants/-/limits?tenant=acme&tenant=globex")).text
    assert "One limit of 2 tenants" in page
    chosen = {"limit": "tpm", "value": "700"}
    path = "/console/tenants/-/limits"
    answer = await post_chosen(visitor, f"{path}/effect", chosen)
    assert "Nothing is saved yet" in answer
    assert (await visitor.administration.get_tenant("acme")).limits.tpm is None
    await post_chosen(visitor, path, chosen)
    for tenant_id in ("acme", "globex"):
        assert (await visitor.administration.get_tenant(tenant_id)).limits.tpm == 700
    assert (await visitor.administration.get_tenant("globex")).limits.rpm == 9
    filters = AuditFilters(action="tenant.limits")
    entries = (await visitor.administration.list_audit(10, filters=filters)).items
    assert sorted(each.subject_id for each in entries) == ["acme", "globex"]
    assert len({each.change_id for each in entries}) == 1
    assert {each.actor for each in entries} == {"user:admin@weir.local"}


async def test_one_limit_of_many_is_saved_for_all_or_none(visitor: Visitor) -> None:
    """What is not said clearly, and a tenant that is gone, change nothing."""
    await visitor.log_in()
    await visitor.get("/console/tenants")
    path = "/console/tenants/-/limits"
    for fields, said in (
        ({"limit": "tpm"}, "say a number"),
        ({"limit": "tpm", "value": "x"}, "must be a whole number"),
        ({"limit": "max_queued", "none.value": "1"}, "there is always one"),
        ({"limit": "weight", "value": "3", "model": "m"}, "the same for all models"),
        ({"limit": "tpm", "value": "3", "tenant": "nobody"}, "there is no tenant nobody"),
    ):
        answer = await visitor.post(path, {"tenant": "acme", **fields})
        assert answer.status_code == 422
        assert said in answer.text
    assert (await visitor.administration.get_tenant("acme")).limits.tpm is None


async def test_a_limit_that_somebody_saved_meanwhile_is_not_overwritten(visitor: Visitor) -> None:
    """B11: nothing is saved where one of them is no longer as it was shown; the page says which,
    and how they are now, and goes on from there."""
    verbs = visitor.administration
    await verbs.create_tenant(ME, "globex", "Globex", Limits(rpm=9))
    await visitor.log_in()
    path = "/console/tenants/-/limits"
    await visitor.get("/console/tenants")
    chosen: dict[str, str | list[str]] = {
        "limit": "rpm", "value": "88", "tenant": ["acme", "globex"],
    }  # fmt: skip
    seen: list[str] = []
    async with asyncio.timeout(10):  # the gateway hears of a new tenant within a moment
        while [each.split(":")[0] for each in seen] != ["acme", "globex"]:
            shown = await visitor.post(f"{path}/effect", chosen)
            seen = re.findall('name="seen" value="([^"]+)"', shown.text)
    await verbs.put_tenant_limits(ME, "globex", Limits(rpm=5))
    late = await visitor.post(path, {**chosen, "seen": seen})
    assert late.status_code == 409
    assert "Nothing was saved: the limits of globex were changed meanwhile" in late.text
    assert [(await verbs.get_tenant(each)).limits.rpm for each in ("acme", "globex")] == [None, 5]
    again = {"globex": (await verbs.get_tenant("globex")).limits_version}
    seen = [seen[0], f"globex:{again['globex']}"]
    assert (await visitor.post(path, {**chosen, "seen": seen})).status_code == 303
    assert [(await verbs.get_tenant(each)).limits.rpm for each in ("acme", "globex")] == [88, 88]


async def post_chosen(visitor: Visitor, path: str, fields: dict[str, str]) -> str:
    """The form of two tenants, as a browser sends a name twice."""
    both: dict[str, str | list[str]] = {**fields, "tenant": ["acme", "globex"]}
    answer = await visitor.post(path, both)
    assert answer.status_code in (200, 303), answer.text
    return answer.text
