"""Invoices, from a draft to what settles them, and who sells; credit notes and budget alerts."""

import re
from datetime import UTC, datetime
from typing import Any

import pytest
from console_visitor import Visitor
from invoice_world import MODEL, InvoiceWorld

from gateway.administration import Administration
from gateway.administration.invoice_desk import InvoiceDesk
from gateway.app import Gateway
from gateway.domain.account import Role
from gateway.domain.tenant import BillingProfile
from gateway.errors import StoreUnavailable

PATH = "/console/money/invoices"
NASTY = """<script>alert(1)</script>"'"""
USED: dict[str, Any] = {
    "prompt_tokens": 1_500_000,
    "cached_prompt_tokens": 0,
    "output_tokens": 250_000,
}


@pytest.fixture
async def world(gateway: Gateway) -> InvoiceWorld:
    """A seller, prices, and what `acme`, taxed at 19 %, used in January."""
    made = InvoiceWorld(gateway.invoicing_postgres)
    await made.open()
    profile = BillingProfile(legal_name=NASTY, country="DE", tax_rate="19", tax_name="VAT")
    await Administration(gateway.postgres).update_tenant(
        "cli:test", "acme", billing_profile=profile
    )
    await made.use("2026-01-10T00:00:00Z", **USED)
    await made.roll_up()
    return made


async def drafted(visitor: Visitor) -> str:
    """The path of January's draft, made by the form."""
    await visitor.get(f"{PATH}/new")
    answer = await visitor.post(PATH, {"tenant_id": "acme", "period": "2026-01"})
    assert answer.status_code == 303, answer.text
    path: str = answer.headers["location"]
    page = await visitor.get(path)
    assert page.status_code == 200, page.text
    return path


async def issued(visitor: Visitor) -> str:
    """The same, issued."""
    path = await drafted(visitor)
    page = await visitor.get(f"{path}/issue")
    assert "Issue the invoice" in page.text, page.text
    answer = await visitor.post(f"{path}/issue")
    assert answer.status_code == 303, answer.text
    await visitor.get(path)
    return path


async def test_a_month_is_drafted_issued_and_paid(visitor: Visitor, world: InvoiceWorld) -> None:
    """What the page shows checks with a calculator: 1.5 million at 1.00 and 0.25 million at
    4.00 are 2.50, with 19 % 2.98."""
    await visitor.log_in(Role.FINANCE)
    assert "No invoices" in (await visitor.get(PATH)).text
    path = await drafted(visitor)
    page = visitor.page
    assert "This is a draft." in page
    assert "that are billed; Usage counts all that have ended" in page
    for shown in ("1,500,000", "250,000", ">1.50<", ">1.00<", "2.50", "19 % of", "0.48", "2.98"):
        assert shown in page, shown
    assert MODEL in page
    assert "<script>alert" not in page
    assert "&lt;script&gt;" in page
    await visitor.get(f"{path}/issue")
    await visitor.post(f"{path}/issue")
    page = (await visitor.get(path)).text
    assert "It is issued as INV-2026-000001." in page
    assert "Note a payment" in page
    form = (await visitor.get(f"{path}/payments")).text
    assert 'value="2.98"' in form
    wrong = {"amount": "9.00", "received_on": "2026-02-30", "reference": "bank 1"}
    answer = await visitor.post(f"{path}/payments", wrong)
    assert answer.status_code == 422
    assert 'id="f-received_on-error"' in answer.text
    assert 'value="9.00"' in answer.text
    answer = await visitor.post(f"{path}/payments", {**wrong, "received_on": "2026-02-01"})
    assert answer.status_code == 409
    assert "only 2.98 USD of it are outstanding" in answer.text
    right = {**wrong, "amount": "2.98", "received_on": "2026-02-01"}
    assert (await visitor.post(f"{path}/payments", right)).status_code == 303
    page = (await visitor.get(path)).text
    assert "It is paid." in page
    back = re.search(rf'href="({path}/payments/[^"]+/take-back)"', page)
    assert back is not None
    assert "bank 1" in (await visitor.get(back[1])).text
    assert (await visitor.post(back[1], {"reason": ""})).status_code == 422
    assert (await visitor.post(back[1], {"reason": "bounced"})).status_code == 303
    page = (await visitor.get(path)).text
    assert "bounced" in page
    assert "-2.98" in page
    assert (await visitor.get(f"{path}/payments/nope/take-back")).status_code == 404


async def test_files_come_from_the_same_address_as_the_apis(
    visitor: Visitor, world: InvoiceWorld
) -> None:
    """In the session that the page is seen in."""
    await visitor.log_in(Role.FINANCE)
    await issued(visitor)
    for ending, begins in ((".pdf", b"%PDF"), (".csv", b""), (".json", b"{")):
        link = re.search(rf'href="(/billing/v1/invoices/[^"]+\{ending})"', visitor.page)
        assert link is not None
        answer = await visitor.client.get(link[1])
        assert answer.status_code == 200
        assert answer.content.startswith(begins)


async def test_what_stands_in_the_way_is_said_with_what_to_do(
    visitor: Visitor, world: InvoiceWorld
) -> None:
    """409 with every blocker, before it is tried and after; a month that is not over cannot be
    passed over."""
    await visitor.log_in(Role.FINANCE)
    await visitor.get(f"{PATH}/new")
    this_month = f"{datetime.now(UTC):%Y-%m}"
    answer = await visitor.post(PATH, {"tenant_id": "acme", "period": this_month})
    path = answer.headers["location"]
    page = (await visitor.get(f"{path}/issue")).text
    assert "its period ends at" in page
    assert "Wait until the month is over" in page
    assert "Issue the invoice" not in page
    answer = await visitor.post(f"{path}/issue")
    assert answer.status_code == 409
    assert "its period ends at" in answer.text
    assert "It cannot be issued yet" in answer.text


async def test_an_issued_invoice_is_made_void_with_a_reason(
    visitor: Visitor, world: InvoiceWorld
) -> None:
    """Which the page asks for, and then shows; void twice changes nothing."""
    await visitor.log_in(Role.FINANCE)
    path = await issued(visitor)
    assert "becomes void" in (await visitor.get(f"{path}/void")).text
    answer = await visitor.post(f"{path}/void", {"reason": " "})
    assert answer.status_code == 422
    assert 'id="f-reason-error"' in answer.text
    assert (await visitor.post(f"{path}/void", {"reason": NASTY})).status_code == 303
    page = (await visitor.get(path)).text
    assert "This invoice is void." in page
    assert "<script>alert" not in page
    page = (await visitor.get(f"{PATH}?status=void&tenant_id=acme")).text
    assert "INV-2026-000001" in page
    assert "1 void" in page


async def test_lines_are_credited_and_then_all_that_is_left(
    visitor: Visitor, world: InvoiceWorld
) -> None:
    """Never more than is left of a line, which is said at its field."""
    await visitor.log_in(Role.FINANCE)
    path = await issued(visitor)
    await visitor.get(f"{path}/credit")
    fields = {"what": "lines", "line-1": "0,5", "reason": "slow", "reference": ""}
    answer = await visitor.post(f"{path}/credit", fields)
    assert answer.status_code == 422
    assert 'id="f-line-1-error"' in answer.text
    assert 'value="0,5"' in answer.text
    answer = await visitor.post(f"{path}/credit", {**fields, "line-1": ""})
    assert answer.status_code == 422
    assert "at one line at least" in answer.text
    answer = await visitor.post(f"{path}/credit", {**fields, "line-1": "100.00"})
    assert answer.status_code == 422
    assert "left to credit" in answer.text
    answer = await visitor.post(f"{path}/credit", {**fields, "line-1": "0.50"})
    assert answer.status_code == 303, answer.text
    page = (await visitor.get(answer.headers["location"])).text
    for shown in ("CN-2026-000001", "0.50", "0.60", "slow", "INV-2026-000001"):
        assert shown in page, shown
    answer = await visitor.post(f"{path}/credit", {"what": "all", "reason": "all of it"})
    assert answer.status_code == 303
    page = (await visitor.get("/console/money/credit-notes?tenant_id=acme")).text
    assert "CN-2026-000002" in page
    assert "All of it is credited already." in (await visitor.get(f"{path}/credit")).text
    await visitor.asks_wrongly("/console/money/credit-notes?tenant_id=A%20B", field="tenant_id")
    await visitor.asks_wrongly("/console/money/credit-notes?invoice_id=nope", field="invoice_id")
    await visitor.asks_wrongly("/console/money/credit-notes?cursor=x")
    assert (await visitor.get("/console/money/credit-notes/nope")).status_code == 404


async def test_the_list_is_filtered_paged_and_added_up(
    visitor: Visitor, world: InvoiceWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sums are of what a tenant or a month names, a currency each for itself."""
    await visitor.log_in(Role.FINANCE)
    await issued(visitor)
    await visitor.get(f"{PATH}/new")
    for currency in ("EUR", "USD"):
        fields = {"tenant_id": "acme", "period": "2026-02", "currency": currency}
        assert (await visitor.post(PATH, fields)).status_code == 303
    page = (await visitor.get(PATH)).text
    assert "Choose a tenant or a month" in page
    assert ">Invoiced<" not in page
    page = (await visitor.get(f"{PATH}?tenant_id=acme")).text
    assert page.count(">Invoiced<") == 2
    assert page.count('2.98 <span class="unit">USD</span>') >= 3
    monkeypatch.setattr("gateway.console.invoices.ROWS", 2)
    page = (await visitor.get(f"{PATH}?tenant_id=acme")).text
    following = page.split('" rel="next"')[0].rpartition('href="')[2].replace("&amp;", "&")
    assert "tenant_id=acme" in following
    assert "INV-2026-000001" not in page
    assert "INV-2026-000001" in (await visitor.get(following)).text
    for wrong in ("period=2026-13", "status=lost", "tenant_id=A%20B"):
        await visitor.asks_wrongly(f"{PATH}?{wrong}", field=wrong.partition("=")[0])
    await visitor.asks_wrongly(f"{PATH}?cursor=x")
    assert (await visitor.get(f"{PATH}/nope")).status_code == 404


async def test_drafting_keeps_what_was_typed_when_it_cannot_be(
    visitor: Visitor, world: InvoiceWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At its field, or above the form while the store is away; and who sells is said in a form."""
    await visitor.log_in(Role.FINANCE)
    await visitor.get(f"{PATH}/new")
    answer = await visitor.post(PATH, {"tenant_id": "nobody", "period": "2026-01"})
    assert answer.status_code == 422
    assert 'id="f-tenant_id-error"' in answer.text
    seller = {"name": NASTY, "country": "Germany", "invoice_prefix": "INV"}
    seller |= {
        "credit_note_prefix": "CN",
        "time_zone": "UTC",
        "address": "Am Wehr 1\n\n10115 Berlin",
    }
    answer = await visitor.post(f"{PATH}/seller", seller)
    assert answer.status_code == 422
    assert 'id="f-country-error"' in answer.text
    assert "<script>alert" not in answer.text
    answer = await visitor.post(f"{PATH}/seller", {**seller, "country": "DE"})
    assert answer.status_code == 303, answer.text
    assert "Am Wehr 1\n10115 Berlin" in (await visitor.get(f"{PATH}/seller")).text
    assert "No alerts" in (await visitor.get("/console/money/budget-alerts")).text
    await visitor.asks_wrongly("/console/money/budget-alerts?tenant_id=A%20B", field="tenant_id")
    await visitor.asks_wrongly("/console/money/budget-alerts?cursor=x")
    await visitor.get(f"{PATH}/new")

    async def away(*_: object, **__: object) -> None:
        raise StoreUnavailable("Postgres cannot be reached")

    monkeypatch.setattr(InvoiceDesk, "draft", away)
    answer = await visitor.post(PATH, {"tenant_id": "acme", "period": "2026-01"})
    assert answer.status_code == 503
    assert 'value="2026-01"' in answer.text
