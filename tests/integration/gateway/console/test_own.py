"""The first page of a tenant's own people: their limits and use, how to connect, what was lately
asked. What others use is in INV-12's tests beside the roles."""

import asyncio

import pytest
import servers
from console_visitor import ME, Visitor
from invoice_world import InvoiceWorld

from gateway.administration import Administration
from gateway.app import Gateway
from gateway.domain.account import Role
from gateway.errors import StoreUnavailable
from gateway.serving.ports import LedgerUnavailable

SCRIPT = "<script>alert(1)</script>\"'"
SHOWN = "&lt;script&gt;alert(1)&lt;/script&gt;&#34;&#39;"
LIMITS = {
    "max_sequences": 32,
    "tpm": 200_000,
    "monthly_budget": "5.00",
    "max_prompt_tokens": 900,
    "models": {"m": {"tpm": 1_500}},
}


@pytest.fixture
async def verbs(gateway: Gateway) -> Administration:
    """To prepare what is shown; the model has a price, which a budget needs."""
    await InvoiceWorld(gateway.invoicing_postgres).price(model="m")
    return Administration(gateway.postgres, redis=gateway.redis)


async def known_here(gateway: Gateway, verbs: Administration) -> None:
    """Wait until the gateway goes by what was just stored of `acme`."""
    stored = await verbs.get_tenant("acme")
    await servers.eventually(lambda: gateway.directory.tenant("acme") == stored)


async def test_limits_stand_beside_their_use(
    visitor: Visitor, verbs: Administration, gateway: Gateway
) -> None:
    """Of the tenant, of a model and of a key that is narrower; with units, and when a budget is
    whole again. What is not limited says so."""
    await verbs.put_tenant_limits(ME, "acme", LIMITS)
    await known_here(gateway, verbs)
    narrow, _ = await verbs.create_key(ME, "acme", "narrow", "batch", limits={"rpm": 77})
    await verbs.create_key(ME, "acme", "as wide", "batch")
    await visitor.log_in(Role.TENANT_ADMIN, tenant_id="acme")
    page = (await visitor.get("/console/own")).text
    for text in ("Acme", "32", "200k", "1.5k", "77", "5.00", "prompt 900 at most", "whole again"):
        assert text in page, text
    assert f'href="/console/own/keys/{narrow.id}"' in page
    assert "as wide" not in page
    assert "none of its own" in page
    assert 'hx-get="/console/own/now"' in page
    part = (await visitor.get("/console/own/now")).text
    assert "<main" not in part
    assert "200k" in part


async def test_how_to_connect_names_this_address_and_the_models(visitor: Visitor) -> None:
    """By the address that the browser came to; a member is not told to make a key."""
    await visitor.log_in(Role.TENANT_MEMBER, tenant_id="acme")
    page = (await visitor.get("/console/own")).text
    assert "http://weir.test/v1" in page
    assert "model=&#34;m&#34;" in page
    assert "No key works yet" in page
    assert "/console/own/keys/new" not in page


async def test_a_member_sees_no_money(
    visitor: Visitor, verbs: Administration, gateway: Gateway
) -> None:
    """But is told when the month's budget keeps requests out."""
    await verbs.put_tenant_limits(ME, "acme", {"monthly_budget": "0"})
    await known_here(gateway, verbs)
    await visitor.log_in(Role.TENANT_MEMBER, tenant_id="acme")
    page = (await visitor.get("/console/own")).text
    assert "Budget this month" not in page
    assert "USD" not in page
    assert "budget is used up" in page


async def test_a_suspended_tenant_is_told(
    visitor: Visitor, verbs: Administration, gateway: Gateway
) -> None:
    """Before anything else."""
    await verbs.update_tenant(ME, "acme", suspended=True)
    await known_here(gateway, verbs)
    await visitor.log_in(Role.TENANT_ADMIN, tenant_id="acme")
    assert "Acme is suspended" in (await visitor.get("/console/own")).text


async def test_while_redis_is_away_use_is_not_known_and_not_0(
    visitor: Visitor, verbs: Administration, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As soon as the last look is a second old. Limits are shown as they are set."""
    await verbs.put_tenant_limits(ME, "acme", LIMITS)
    await known_here(gateway, verbs)
    await visitor.log_in(Role.TENANT_ADMIN, tenant_id="acme")
    assert "not known" not in (await visitor.get("/console/own/now")).text

    async def away(*_: object) -> None:
        raise LedgerUnavailable(OSError)

    monkeypatch.setattr(type(gateway.ledger), "observe", away)
    answer = await visitor.get("/console/own/now")
    async with asyncio.timeout(10):
        while "not known" not in answer.text:
            answer = await visitor.get("/console/own/now")
    assert answer.status_code == 200
    assert "What is used right now is not known" in answer.text
    assert "200k" in answer.text
    assert (
        '<span class="sr-only">not known</span></span> <span class="of">of</span> 32' in answer.text
    )


async def test_while_postgres_is_away_the_rest_is_shown(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requests say that they cannot be read, and never that there are none."""
    await visitor.log_in(Role.TENANT_ADMIN, tenant_id="acme")
    assert "No request has ended yet" in (await visitor.get("/console/own")).text

    async def away(*_: object, **__: object) -> None:
        raise StoreUnavailable("Postgres cannot be reached")

    monkeypatch.setattr("gateway.adapters.request_story.RequestStories.page", away)
    monkeypatch.setattr("gateway.administration.Administration.list_keys", away)
    page = (await visitor.get("/console/own")).text
    assert "Requests cannot be read right now" in page
    assert "No request has ended yet" not in page
    assert "No key works yet" not in page
    assert "Sequences running" in page


async def test_latest_requests_lead_to_their_pages(
    visitor: Visitor, verbs: Administration, gateway: Gateway
) -> None:
    """With the names of keys, newest first; those of another tenant are not there."""
    books = InvoiceWorld(gateway.invoicing_postgres)
    key, _ = await verbs.create_key(ME, "acme", SCRIPT, "batch")
    first, second = await books.use_all(
        ["2026-01-05T12:00:00Z", "2026-01-05T12:00:01Z"], currency=None, api_key_id=key.id
    )
    await verbs.create_tenant(ME, "globex", "Globex")
    other = await books.use("2026-01-05T12:00:02Z", currency=None, tenant_id="globex")
    await visitor.log_in(Role.TENANT_MEMBER, tenant_id="acme")
    part = (await visitor.get("/console/own/latest")).text
    at = [part.find(f'href="/console/requests/{each.request_id}"') for each in (second, first)]
    assert 0 < at[0] < at[1]
    assert str(other.request_id) not in part
    assert SHOWN in part
    assert SCRIPT not in part


async def test_what_people_wrote_is_text(visitor: Visitor, verbs: Administration) -> None:
    """A tenant's and a key's name on every page of its own people."""
    await verbs.create_tenant(ME, "odd", SCRIPT)
    key, _ = await verbs.create_key(ME, "odd", SCRIPT, "batch", limits={"tpm": 5})
    await visitor.log_in(Role.TENANT_ADMIN, tenant_id="odd")
    for path in ("", "/now", "/keys", f"/keys/{key.id}", f"/keys/{key.id}/limits", "/usage",
                 "/invoices", "/credit-notes", "/keys/new"):  # fmt: skip
        answer = await visitor.get(f"/console/own{path}")
        assert answer.status_code == 200, path
        assert "<script>alert" not in answer.text, path
    assert SHOWN in (await visitor.get("/console/own/now")).text


async def test_those_who_run_weir_have_no_such_page(visitor: Visitor) -> None:
    """An admin is of no tenant."""
    await visitor.log_in()
    for path in ("", "/now", "/latest", "/keys", "/usage", "/invoices"):
        assert (await visitor.get(f"/console/own{path}")).status_code == 403
