"""A tenant's own invoices and credit notes: issued, paid and void ones, with their files."""

import re
from typing import Any

import pytest
from console_visitor import Visitor
from invoice_world import InvoiceWorld, billed

from billing.domain.invoicing.tax import Tax
from billing.postgres.unbilled import Unbilled
from gateway.administration import Administration, invoice_desk
from gateway.app import Gateway
from gateway.domain.account import Role

INVOICES, NOTES = "/console/own/invoices", "/console/own/credit-notes"
TOKENS: dict[str, Any] = {
    "prompt_tokens": 3_000_000,
    "cached_prompt_tokens": 10**6,
    "output_tokens": 500_000,
}
TAXED = billed(tax=Tax(name="VAT", rate_milli_percent=19_000))


@pytest.fixture
async def books(gateway: Gateway) -> InvoiceWorld:
    """With a seller and a price."""
    made = InvoiceWorld(gateway.invoicing_postgres)
    await made.open()
    return made


@pytest.fixture
async def admin(visitor: Visitor) -> Visitor:
    """Of `acme`."""
    await visitor.log_in(Role.TENANT_ADMIN, tenant_id="acme")
    return visitor


async def test_none_yet_says_when_there_is_one(admin: Visitor) -> None:
    """Instead of an empty table; of a filter that nothing passes it says that."""
    assert "No invoice yet" in (await admin.get(INVOICES)).text
    assert "No such invoice" in (await admin.get(f"{INVOICES}?status=paid")).text
    assert "No credit note" in (await admin.get(NOTES)).text
    assert (await admin.get(f"{INVOICES}?status=draft")).status_code == 422
    assert (await admin.get(f"{INVOICES}?cursor=nope")).status_code == 422


async def test_an_invoice_is_shown_whole_and_a_draft_is_nothing(
    admin: Visitor, books: InvoiceWorld
) -> None:
    """Lines that a calculator checks, taxes, payments, credit notes; who issued it is not told."""
    for month in (1, 2):
        await books.use(f"2026-0{month}-05T12:00:00Z", **TOKENS)
    issued = (await books.close("2026-01", TAXED)).invoice
    draft = (await books.draft("2026-02")).invoice
    await books.pay(issued.id, 1, reference="bank <b>1</b>")
    note = (await books.credit(issued.id, (1, 1))).credit_note
    page = (await admin.get(INVOICES)).text
    assert issued.number is not None
    assert f'href="{INVOICES}/{issued.number}"' in page
    assert str(draft.id) not in page
    assert page.count("2026-02") == 0
    whole = (await admin.get(f"{INVOICES}/{issued.number}")).text
    # 2,000,000 uncached at 1.00, 1,000,000 cached at 0.10, 500,000 out at 4.00 a million.
    for text in (
        "2,000,000",
        "1,000,000",
        "500,000",
        "2.00",
        "0.10",
        "4.10",
        "VAT",
        "19 %",
        "4.88",
    ):
        assert text in re.sub(r"<[^>]+>", "", whole), text
    assert "bank &lt;b&gt;1&lt;/b&gt;" in whole
    assert f"{NOTES}/{note.number}" in whole
    assert "fin" not in re.findall(r">(\w+)<", whole)
    for path in (
        f"{INVOICES}/{draft.id}",
        f"{INVOICES}/{draft.id}.pdf",
        f"{INVOICES}/acme/2026-02",
    ):
        assert (await admin.get(path)).status_code == 404, path
    credit = (await admin.get(f"{NOTES}/{note.number}")).text
    assert issued.number in credit
    assert note.number in (await admin.get(NOTES)).text


async def test_all_that_was_ever_used_is_not_looked_at_for_a_tenant(
    admin: Visitor, books: InvoiceWorld, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is shown nothing of it, on the page and over the API."""
    looked: list[object] = []

    async def unbilled(*asked: object) -> list[Unbilled]:
        looked.append(asked)
        return []

    monkeypatch.setattr(invoice_desk, "load_unbilled", unbilled)
    await books.use("2026-01-05T12:00:00Z", **TOKENS)
    number = (await books.close("2026-01")).invoice.number
    verbs = Administration(gateway.postgres)
    token = await verbs.issue_token("cli:test", "tenant_admin@weir.local", "t")
    bearer = {"authorization": f"Bearer {token}"}
    assert (await admin.get(f"{INVOICES}/{number}")).status_code == 200
    api = await admin.client.get(f"/billing/v1/invoices/{number}", headers=bearer)
    assert (api.status_code, api.json()["unbilled"], looked) == (200, [], [])


async def test_files_are_those_of_the_api(
    admin: Visitor, books: InvoiceWorld, gateway: Gateway
) -> None:
    """Byte for byte, and kept by no cache."""
    await books.use("2026-01-05T12:00:00Z", **TOKENS)
    issued = (await books.close("2026-01")).invoice
    note = (await books.credit(issued.id, (1, 1))).credit_note
    verbs = Administration(gateway.postgres)
    token = await verbs.issue_token("cli:test", "tenant_admin@weir.local", "t")
    bearer = {"authorization": f"Bearer {token}"}
    for pages, api, number in (
        (INVOICES, "/billing/v1/invoices", issued.number),
        (NOTES, "/billing/v1/credit-notes", note.number),
    ):
        for ending in ("pdf", "csv", "json"):
            file = await admin.get(f"{pages}/{number}.{ending}")
            other = await admin.client.get(f"{api}/{number}.{ending}", headers=bearer)
            assert file.status_code == other.status_code == 200
            assert file.content == other.content
            assert file.headers["content-disposition"] == other.headers["content-disposition"]
            assert file.headers["cache-control"] == "no-store"


async def test_a_void_one_says_that_nothing_is_to_be_paid(
    admin: Visitor, books: InvoiceWorld
) -> None:
    """Why it is void is not told: that is for those who run Weir."""
    await books.use("2026-01-05T12:00:00Z", **TOKENS)
    issued = (await books.close("2026-01")).invoice
    await books.void(issued.id)
    whole = (await admin.get(f"{INVOICES}/{issued.number}")).text
    assert "This invoice is void" in whole
    assert "wrong address" not in whole
    assert issued.number is not None
    assert issued.number in (await admin.get(f"{INVOICES}?status=void")).text
    assert issued.number not in (await admin.get(f"{INVOICES}?status=issued")).text


async def test_the_list_goes_on_page_by_page(
    admin: Visitor, books: InvoiceWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the filter kept; each invoice on one page."""
    monkeypatch.setattr("gateway.console.own_invoices.ROWS", 2)
    numbers = []
    for month in range(1, 6):
        await books.use(f"2026-0{month}-05T12:00:00Z", **TOKENS)
        numbers.append((await books.close(f"2026-0{month}")).invoice.number)
    path, seen = f"{INVOICES}?status=issued", []
    while path:
        page = (await admin.get(path)).text
        seen += re.findall(rf'<a href="{INVOICES}/(INV[\w-]+)"', page)
        following = re.search(r'href="([^"]+)" rel="next"', page)
        path = "" if following is None else following[1].replace("&amp;", "&")
        assert not path or "status=issued" in path
    assert seen == numbers[::-1]


async def test_a_member_sees_none(visitor: Visitor) -> None:
    """Neither in the navigation nor by its path."""
    await visitor.log_in(Role.TENANT_MEMBER, tenant_id="acme")
    assert INVOICES not in visitor.page
    for path in (INVOICES, NOTES, f"{INVOICES}/INV-2026-000001", f"{NOTES}/CN-2026-000001.pdf"):
        assert (await visitor.get(path)).status_code == 403
