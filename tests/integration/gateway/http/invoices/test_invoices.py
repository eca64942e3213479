"""Invoices on the finance API: from the rows to what is issued, void or paid."""

import asyncio
from datetime import date
from fractions import Fraction
from typing import Any

from finance_api import FinanceApi

from billing.domain.invoicing.issuing import Blocker, Obstacle
from gateway.domain.account import Role

USE = {"prompt_tokens": 3_000_000, "cached_prompt_tokens": 1_000_000, "output_tokens": 1_234_567}
IN_JANUARY = "2026-01-15T12:00:00Z"
BODY = {"tenant_id": "acme", "period": "2026-01"}


async def used(finance: FinanceApi, at: str = IN_JANUARY, **changes: Any) -> None:
    """One request: 2.00 for the prompt, 0.10 for what was cached, 4.94 for the output."""
    await finance.world.use(at, **{**USE, **changes})
    await finance.world.roll_up()


async def test_a_month_is_drafted_from_its_rows(finance: FinanceApi) -> None:
    """The contract: id, no number yet, status, currency, total and lines, money in texts; each line
    checks with a calculator, and the lines and the tax make the total."""
    await used(finance)
    drafted = await finance.draft()
    assert (drafted["number"], drafted["status"], drafted["currency"]) == (None, "draft", "USD")
    assert (drafted["subtotal"], drafted["tax"], drafted["total"]) == ("7.04", "1.34", "8.38")
    assert [(line["unit"], line["quantity"], line["amount"]) for line in drafted["lines"]] == [
        ("input_tokens", 2_000_000, "2.00"),
        ("cached_input_tokens", 1_000_000, "0.10"),
        ("output_tokens", 1_234_567, "4.94"),
    ]
    for line in drafted["lines"]:
        exact = line["quantity"] * Fraction(line["unit_price"]) / line["price_per"]
        assert Fraction(line["amount_exact"]) == exact
        assert Fraction(line["amount"]) == Fraction(int(exact * 100 + Fraction(1, 2)), 100)
    assert sum(Fraction(line["amount"]) for line in drafted["lines"]) == Fraction("7.04")
    assert drafted["taxes"] == [
        {"rate": "19", "name": "VAT", "note": "", "base": "7.04", "amount": "1.34"}
    ]
    assert drafted["customer"]["name"] == "Acme Spółka z o.o."
    assert drafted["customer"]["reference"] == "PO-4711"
    assert drafted["period"]["start"] == "2026-01-01T00:00:00Z"
    assert (drafted["blockers"], drafted["content_hash"]) == ([], None)


async def test_v29_drafting_again_is_the_same_invoice_made_anew(finance: FinanceApi) -> None:
    """V29: the same id twice, with what has come meanwhile; one draft is in the list."""
    await used(finance)
    first = await finance.draft()
    await used(finance, "2026-01-16T00:00:00Z")
    second = await finance.draft()
    assert second["id"] == first["id"]
    assert (second["subtotal"], second["row_count"]) == ("14.08", 2)
    assert len(second["lines"]) == 3
    page = await finance.ok("GET", "/invoices")
    assert [each["id"] for each in page["items"]] == [first["id"]]
    entries = await finance.admin.json("GET", "/audit?subject_kind=invoice")
    assert [entry["action"] for entry in entries["items"]] == ["invoice.draft"]


async def test_issuing_numbers_and_freezes(finance: FinanceApi) -> None:
    """Again it is the same invoice with the same number, whatever came meanwhile; drafting the
    month gives it back; the audit log has who, and what changed."""
    await used(finance)
    drafted = await finance.draft()
    issued = await finance.ok("POST", f"/invoices/{drafted['id']}/issue")
    assert issued["number"].startswith("INV-")
    assert issued["number"].endswith("-000001")
    assert (issued["status"], issued["outstanding"]) == ("issued", "8.38")
    assert issued["issued_by"] == "user:finance@weir.local"
    assert len(issued["content_hash"]) == 64
    await used(finance, "2026-01-17T00:00:00Z")
    assert await finance.ok("POST", f"/invoices/{drafted['id']}/issue", {}) == issued
    assert await finance.draft() == issued
    assert await finance.ok("GET", f"/invoices/{issued['number']}") == issued
    entries = (await finance.admin.json("GET", "/audit?action=invoice.issue"))["items"]
    assert len(entries) == 1
    assert entries[0]["actor"] == "user:finance@weir.local"
    assert (entries[0]["before"]["status"], entries[0]["after"]["number"]) == (
        "draft",
        issued["number"],
    )


async def test_due_by_the_tenants_own_terms(finance: FinanceApi) -> None:
    """14 days after the day of issue."""
    await used(finance)
    issued = await finance.issued()
    document = await finance.ok("GET", f"/invoices/{issued['id']}.json")
    issued_on, due_on = (date.fromisoformat(document[name]) for name in ("issued_on", "due_on"))
    assert (due_on - issued_on).days == 14
    assert issued["due_on"] == document["due_on"]


async def test_everything_in_the_way_is_listed(finance: FinanceApi) -> None:
    """409 with a machine's list: an unpriced record by its model, and what may still come; the
    latter alone finance may pass over, and both are told in words too. Nothing is issued."""
    await used(finance)
    await finance.world.use(IN_JANUARY, model="nobody-priced-it")
    await finance.world.roll_up()
    drafted = await finance.draft()
    assert [each["obstacle"] for each in drafted["blockers"]] == ["unpriced"]
    finance.expected.append(
        Blocker(obstacle=Obstacle.GATEWAY_BEHIND, subject="gw-2", what="gateway gw-2 is late")
    )
    path = f"/invoices/{drafted['id']}/issue"
    problem = await finance.refused("POST", path, status=409)
    assert (problem["code"], problem["title"]) == ("issue_blocked", "Conflict")
    late = {
        "obstacle": "gateway_behind",
        "subject": "gw-2",
        "count": 1,
        "what": "gateway gw-2 is late",
        "can_be_overridden": True,
    }
    assert late in problem["blockers"]
    problem = await finance.refused(
        "POST", path, {"override": {"reason": "gw-2 is burnt"}}, status=409
    )
    (unpriced,) = [each for each in problem["blockers"] if not each["can_be_overridden"]]
    assert (unpriced["obstacle"], unpriced["count"]) == ("unpriced", 1)
    assert "nobody-priced-it" in unpriced["what"]
    assert (await finance.ok("GET", f"/invoices/{drafted['id']}"))["status"] == "draft"
    assert (await finance.admin.json("GET", "/audit?action=invoice.issue"))["items"] == []


async def test_finance_overrides_what_may_still_come_on_record(finance: FinanceApi) -> None:
    """Why, and over what, is on the invoice and in the audit log."""
    await used(finance)
    drafted = await finance.draft()
    finance.expected.append(
        Blocker(obstacle=Obstacle.GATEWAY_BEHIND, subject="gw-2", what="gateway gw-2 is late")
    )
    path = f"/invoices/{drafted['id']}/issue"
    await finance.refused("POST", path, status=409)
    issued = await finance.ok("POST", path, {"override": {"reason": "gw-2 is burnt"}})
    assert issued["status"] == "issued"
    assert issued["override"]["reason"] == "gw-2 is burnt"
    assert [each["subject"] for each in issued["override"]["blockers"]] == ["gw-2"]
    (entry,) = (await finance.admin.json("GET", "/audit?action=invoice.issue"))["items"]
    assert entry["after"]["override"] == issued["override"]


async def test_v30_many_at_once_make_one_invoice_and_one_number(finance: FinanceApi) -> None:
    """V30: twenty drafts and twenty issues of a month, all at once: one id, one number, one entry
    of each in the audit log, and the next invoice has the next number."""
    await used(finance)
    await used(finance, "2026-02-15T12:00:00Z")
    assert (await finance.ok("GET", "/invoices"))["items"] == []
    drafts = await asyncio.gather(*(finance.draft() for _ in range(20)))
    (invoice_id,) = {each["id"] for each in drafts}
    path = f"/invoices/{invoice_id}/issue"
    issues = await asyncio.gather(*(finance.ok("POST", path) for _ in range(20)))
    (number,) = {each["number"] for each in issues}
    assert number.endswith("-000001")
    entries = (await finance.admin.json("GET", "/audit?subject_kind=invoice"))["items"]
    assert [entry["action"] for entry in entries] == ["invoice.issue", "invoice.draft"]
    assert (await finance.issued("2026-02"))["number"].endswith("-000002")


async def test_a_month_that_is_not_over_is_not_issued(finance: FinanceApi) -> None:
    """Nor by an override."""
    drafted = await finance.draft("2099-01")
    for body in ({}, {"override": {"reason": "hurry"}}):
        problem = await finance.refused(
            "POST", f"/invoices/{drafted['id']}/issue", body, status=409
        )
        assert [each["obstacle"] for each in problem["blockers"]] == ["period_open"]


async def test_a_void_invoice_keeps_its_number_and_frees_its_rows(finance: FinanceApi) -> None:
    """The month's next invoice has them, and the next number. Voiding twice changes nothing."""
    await used(finance)
    first = await finance.issued()
    path = f"/invoices/{first['id']}/void"
    voided = await finance.ok("POST", path, {"reason": "wrong address"})
    assert (voided["status"], voided["number"]) == ("void", first["number"])
    assert (voided["void_reason"], voided["outstanding"]) == ("wrong address", "0.00")
    assert await finance.ok("POST", path, {"reason": "again"}) == voided
    await finance.refused("POST", f"/invoices/{first['id']}/issue", status=409)
    second = await finance.issued()
    assert second["id"] != first["id"]
    assert second["number"].endswith("-000002")
    assert second["total"] == first["total"]
    entries = (await finance.admin.json("GET", "/audit?action=invoice.void"))["items"]
    assert [entry["subject_id"] for entry in entries] == [first["id"]]
    void = await finance.ok("GET", "/invoices?status=void")
    assert [each["id"] for each in void["items"]] == [first["id"]]


async def test_lists_are_paged_and_filtered(finance: FinanceApi) -> None:
    """Each once, the latest drafted first."""
    ids = [(await finance.draft(f"2026-0{month}"))["id"] for month in (1, 2, 3)]
    found: list[str] = []
    path = "/invoices?limit=2&tenant_id=acme"
    while path:
        page = await finance.ok("GET", path)
        found += [each["id"] for each in page["items"]]
        cursor = page["next_cursor"]
        path = f"/invoices?limit=2&tenant_id=acme&cursor={cursor}" if cursor else ""
    assert found == ids[::-1]
    for query, expected in (
        ("period=2026-02", [ids[1]]),
        ("status=issued", []),
        ("currency=EUR", []),
        ("tenant_id=globex", []),
    ):
        page = await finance.ok("GET", f"/invoices?{query}")
        assert [each["id"] for each in page["items"]] == expected


NOBODY = "/invoices/018f0000-0000-7000-8000-000000000001"
WRONG: list[tuple[str, str, object, int, str | None]] = [
    ("POST", "/invoices", {"tenant_id": "acme"}, 422, "period"),
    ("POST", "/invoices", {**BODY, "period": "2026-13"}, 422, "period"),
    ("POST", "/invoices", {**BODY, "period": "January"}, 422, "period"),
    ("POST", "/invoices", {**BODY, "period": "2026-1"}, 422, "period"),
    ("POST", "/invoices", {**BODY, "tenant_id": "No One"}, 422, "tenant_id"),
    ("POST", "/invoices", {**BODY, "tenant_id": "nobody"}, 422, "tenant_id"),
    ("POST", "/invoices", {**BODY, "currency": "ZZZ"}, 422, "currency"),
    ("POST", "/invoices", {**BODY, "total": "1.00"}, 422, "total"),
    ("GET", "/invoices?status=lost", None, 422, "status"),
    ("GET", "/invoices?limit=0", None, 422, "limit"),
    ("GET", "/invoices?cursor=AA", None, 422, "cursor"),
    ("GET", "/invoices?period=2026", None, 422, "period"),
    ("GET", "/invoices/nothing", None, 404, None),
    ("GET", "/invoices/nothing.pdf", None, 404, None),
    ("GET", "/invoices/%00", None, 422, None),
    ("GET", f"{NOBODY}.csv", None, 404, None),
    ("POST", f"{NOBODY}/issue", None, 404, None),
    ("POST", f"{NOBODY}/void", {}, 422, "reason"),
]


async def test_what_is_wrong_is_named(finance: FinanceApi) -> None:
    for method, path, body, status, param in WRONG:
        problem = await finance.refused(method, path, body, status=status)
        assert problem.get("param") == param, path


async def test_a_text_that_names_nothing_is_not_shown_again(finance: FinanceApi) -> None:
    """A number or a month that is not there is."""
    for named, shown in (("INV-1999-000001", True), ("what somebody wrote", False)):
        problem = await finance.refused("GET", f"/invoices/{named}", status=404)
        assert (named in problem["detail"]) is shown


async def test_invoices_are_finances(finance: FinanceApi) -> None:
    """Others neither see nor make them; admins do."""
    for role in (Role.OPERATOR, Role.VIEWER):
        for method, path, body in (
            ("GET", "/invoices", None),
            ("POST", "/invoices", BODY),
            ("GET", "/credit-notes", None),
            ("GET", "/seller", None),
            ("PUT", "/seller", {}),
        ):
            assert (await finance.call(method, path, body, role=role)).status_code == 403
    assert (await finance.call("GET", "/invoices", role=Role.ADMIN)).json()["items"] == []


async def test_a_change_of_the_tenant_reaches_drafts_and_no_issued_invoice(
    finance: FinanceApi,
) -> None:
    """Name and tax are the tenant's at issue."""
    await used(finance)
    await used(finance, "2026-02-15T12:00:00Z")
    january = await finance.issued("2026-01")
    profile = {"legal_name": "Acme Holding", "tax_rate": "0", "tax_note": "Reverse charge"}
    await finance.admin.json("PATCH", "/tenants/acme", {"billing_profile": profile})
    february = await finance.issued("2026-02")
    assert (february["customer"]["name"], february["tax"]) == ("Acme Holding", "0.00")
    assert february["taxes"][0]["note"] == "Reverse charge"
    assert await finance.ok("GET", f"/invoices/{january['id']}") == january
