"""Credit notes and the seller on the finance API."""

from fractions import Fraction
from typing import Any

import pytest
from finance_api import FinanceApi

SELLER = {
    "name": "Weir Operations GmbH",
    "address": ["Wehrstraße 12", "10115 Berlin"],
    "country": "DE",
    "tax_id": "DE123456789",
    "email": "billing@weir.example",
    "bank": ["IBAN DE02 1203 0000 0000 2020 51"],
    "invoice_prefix": "WO",
    "credit_note_prefix": "WOC",
    "time_zone": "Europe/Berlin",
}


@pytest.fixture
async def issued(finance: FinanceApi) -> Any:
    """January's invoice: 2.00, 0.10 and 4.94, and 1.34 of tax."""
    await finance.world.use(
        "2026-01-15T12:00:00Z",
        prompt_tokens=3_000_000,
        cached_prompt_tokens=1_000_000,
        output_tokens=1_234_567,
    )
    await finance.world.roll_up()
    return await finance.issued()


def body_of(invoice: Any, *lines: tuple[int, str], **more: Any) -> dict[str, Any]:
    """A credit of these positions and amounts."""
    body: dict[str, Any] = {"invoice_id": invoice["id"], "reason": "Wrong answers", **more}
    if lines:
        body["lines"] = [{"position": at, "amount": amount} for at, amount in lines]
    return body


async def test_lines_are_credited_with_their_tax(finance: FinanceApi, issued: Any) -> None:
    """It has a number of its own series at once, and the invoice says what was credited."""
    note = await finance.ok("POST", "/credit-notes", body_of(issued, (3, "4.00"), (1, "1.00")))
    assert note["number"].startswith("CN-")
    assert note["number"].endswith("-000001")
    assert (note["subtotal"], note["tax"], note["total"]) == ("5.00", "0.95", "5.95")
    assert note["invoice_number"] == issued["number"]
    assert [(line["position"], line["invoiced"], line["amount"]) for line in note["lines"]] == [
        (1, "2.00", "1.00"),
        (3, "4.94", "4.00"),
    ]
    assert await finance.ok("GET", f"/credit-notes/{note['id']}") == note
    assert await finance.ok("GET", f"/credit-notes/{note['number']}") == note
    shown = await finance.ok("GET", f"/invoices/{issued['id']}")
    assert (shown["credited"], shown["outstanding"]) == ("5.95", "2.43")
    assert [each["number"] for each in shown["credit_notes"]] == [note["number"]]
    (entry,) = (await finance.admin.json("GET", "/audit?action=credit_note.issue"))["items"]
    assert (entry["actor"], entry["subject_id"]) == ("user:finance@weir.local", note["id"])


async def test_v14_what_is_left_takes_the_remainder(finance: FinanceApi, issued: Any) -> None:
    """V14: a part and then all that is left come to the invoice to the cent, never more; the
    invoice is settled, and nothing is left to credit."""
    first = await finance.ok("POST", "/credit-notes", body_of(issued, (3, "0.01")))
    rest = await finance.ok("POST", "/credit-notes", body_of(issued))
    total = Fraction(first["total"]) + Fraction(rest["total"])
    assert total == Fraction(issued["total"])
    shown = await finance.ok("GET", f"/invoices/{issued['id']}")
    assert (shown["status"], shown["credited"]) == ("paid", issued["total"])
    await finance.refused("POST", "/credit-notes", body_of(issued), status=422)
    page = await finance.ok("GET", f"/credit-notes?invoice_id={issued['number']}")
    assert [each["number"] for each in page["items"]] == [rest["number"], first["number"]]


async def test_a_line_is_never_credited_beyond_itself(finance: FinanceApi, issued: Any) -> None:
    """Over all credit notes, and in money."""
    await finance.ok("POST", "/credit-notes", body_of(issued, (1, "1.50")))
    problem = await finance.refused(
        "POST", "/credit-notes", body_of(issued, (1, "0.51")), status=422
    )
    assert problem["detail"] == "lines: line 1 has 0.50 USD left to credit"
    assert problem["param"] == "lines"


async def test_the_same_reference_is_the_same_credit_note(finance: FinanceApi, issued: Any) -> None:
    """However often it is sent; something else under it is a 409."""
    body = body_of(issued, (1, "1.00"), reference="ticket-7")
    first = await finance.ok("POST", "/credit-notes", body)
    assert (await finance.ok("POST", "/credit-notes", body))["id"] == first["id"]
    other = body_of(issued, (1, "0.50"), reference="ticket-7")
    await finance.refused("POST", "/credit-notes", other, status=409)
    await finance.refused("POST", "/credit-notes", body | {"reason": "Another"}, status=409)
    # A part is not all that is left, which the caller would take for credited.
    await finance.refused(
        "POST", "/credit-notes", body_of(issued, reference="ticket-7"), status=409
    )
    assert len((await finance.ok("GET", "/credit-notes?tenant_id=acme"))["items"]) == 1
    rest = body_of(issued, reference="ticket-8")
    all_left = await finance.ok("POST", "/credit-notes", rest)
    assert (await finance.ok("POST", "/credit-notes", rest))["id"] == all_left["id"]
    assert (await finance.ok("POST", "/credit-notes", body))["id"] == first["id"]


async def test_its_documents_say_one_total(finance: FinanceApi, issued: Any) -> None:
    """And are the same bytes each time."""
    note = await finance.ok("POST", "/credit-notes", body_of(issued, (3, "4.00")))
    for ending in ("json", "csv", "pdf"):
        first = await finance.call("GET", f"/credit-notes/{note['id']}.{ending}")
        again = await finance.call("GET", f"/credit-notes/{note['number']}.{ending}")
        assert first.status_code == 200
        assert first.content == again.content
        assert f"{note['number']}.{ending}" in first.headers["content-disposition"]
    document = await finance.ok("GET", f"/credit-notes/{note['id']}.json")
    assert (document["total"], document["content_hash"]) == (note["total"], note["content_hash"])


async def test_what_cannot_be_credited(finance: FinanceApi, issued: Any) -> None:
    """Each is named, and nothing is credited."""
    wrong: list[tuple[dict[str, object], int, str]] = [
        ({"lines": []}, 422, "lines"),
        ({"lines": [{"position": 9, "amount": "1.00"}]}, 422, "lines"),
        ({"lines": [{"position": 1, "amount": "0.00"}]}, 422, "lines[0].amount"),
        ({"lines": [{"position": 1, "amount": "0.001"}]}, 422, "lines[0].amount"),
        ({"lines": [{"position": 1, "amount": "1"}] * 2}, 422, "lines"),
        ({"lines": [{"position": 1}]}, 422, "lines[0].amount"),
        ({"reason": " "}, 422, "reason"),
        ({"reason": "a\nb"}, 422, "reason"),
        ({"reference": "x" * 101}, 422, "reference"),
        ({"invoice_id": "INV-1999-000001"}, 422, "invoice_id"),
        ({"invoice_id": "018f0000-0000-7000-8000-000000000001"}, 422, "invoice_id"),
        ({"invoice_id": "acme/2031-01"}, 422, "invoice_id"),
    ]
    for changes, status, param in wrong:
        body = {**body_of(issued, (1, "1.00")), **changes}
        problem = await finance.refused("POST", "/credit-notes", body, status=status)
        assert problem["param"] == param, changes
    assert (await finance.ok("GET", "/credit-notes"))["items"] == []
    unknown = await finance.refused("GET", "/credit-notes?invoice_id=nothing", status=422)
    assert unknown["param"] == "invoice_id"


async def test_a_draft_is_not_credited(finance: FinanceApi) -> None:
    drafted = await finance.draft()
    await finance.refused("POST", "/credit-notes", body_of(drafted), status=409)


async def test_the_seller_is_said_whole_and_on_record(finance: FinanceApi) -> None:
    """What is issued from then on has it and its numbers; the same again is no entry."""
    assert await finance.ok("PUT", "/seller", SELLER) == SELLER
    assert await finance.ok("GET", "/seller") == SELLER
    await finance.ok("PUT", "/seller", SELLER)
    (entry,) = (await finance.admin.json("GET", "/audit?action=seller.set"))["items"]
    assert (entry["before"]["name"], entry["after"]) == ("Weir Test GmbH", SELLER)
    issued = await finance.issued()
    assert issued["number"].startswith("WO-")
    document = await finance.ok("GET", f"/invoices/{issued['id']}.json")
    assert document["seller"] == SELLER


async def test_a_prefix_numbers_one_kind_of_document(finance: FinanceApi, issued: Any) -> None:
    """Whatever the seller was before: what numbers invoices never numbers credit notes, nor the
    other way, also where its invoices have none yet."""
    swapped = {**SELLER, "invoice_prefix": "CN", "credit_note_prefix": "INV"}
    for changes, param, detail in (
        ({}, "invoice_prefix", "CN numbers credit notes"),
        ({"invoice_prefix": "WO"}, "credit_note_prefix", "INV numbers invoices"),
    ):
        problem = await finance.refused("PUT", "/seller", {**swapped, **changes}, status=422)
        assert problem["param"] == param
        assert detail in problem["detail"]
    await finance.ok("PUT", "/seller", SELLER)
    note = await finance.ok("POST", "/credit-notes", body_of(issued))
    assert note["number"].startswith("CN-")
    problem = await finance.refused("PUT", "/seller", swapped, status=422)
    assert problem["param"] == "invoice_prefix"
    assert await finance.ok("GET", "/seller") == SELLER
    unused = {**SELLER, "invoice_prefix": "WOC", "credit_note_prefix": "WO"}
    assert await finance.ok("PUT", "/seller", unused) == unused


async def test_a_seller_of_before_is_told_of_its_prefix(finance: FinanceApi, issued: Any) -> None:
    """Where an earlier release wrote it down, issuing says so and takes no number."""
    draft = await finance.draft("2026-02")
    details = """jsonb_set(details, '{invoice_prefix}', '"CN"')"""
    await finance.world.sql(f"UPDATE seller SET details = {details}")
    problem = await finance.refused("POST", f"/invoices/{draft['id']}/issue", status=409)
    assert "invoice_prefix: CN numbers credit notes" in problem["detail"]
    assert await finance.world.query("SELECT count(*) FROM invoice_number") == [(1,)]


async def test_nobody_sells_yet(without_seller: FinanceApi) -> None:
    """404; a draft can be looked at, and is not issued."""
    finance = without_seller
    await finance.refused("GET", "/seller", status=404)
    drafted = await finance.draft()
    assert (await finance.call("GET", f"/invoices/{drafted['id']}.pdf")).status_code == 200
    problem = await finance.refused("POST", f"/invoices/{drafted['id']}/issue", status=409)
    assert [each["obstacle"] for each in problem["blockers"]] == ["no_seller"]


async def test_a_seller_that_cannot_be_printed(finance: FinanceApi) -> None:
    """Each field is named, and the seller stays."""
    wrong: list[tuple[dict[str, object], str]] = [
        ({"name": " "}, "name"),
        ({"country": "Germany"}, "country"),
        ({"country": None}, "country"),
        ({"email": "nobody"}, "email"),
        ({"time_zone": "Berlin"}, "time_zone"),
        ({"invoice_prefix": "inv"}, "invoice_prefix"),
        ({"invoice_prefix": "WOC"}, "credit_note_prefix"),
        ({"credit_note_prefix": ""}, "credit_note_prefix"),
        ({"bank": ["a\x00b"]}, "bank"),
        ({"address": ["a"] * 7}, "address"),
        ({"logo": "x"}, "logo"),
    ]
    for changes, param in wrong:
        problem = await finance.refused("PUT", "/seller", {**SELLER, **changes}, status=422)
        assert problem["param"] == param
    assert (await finance.ok("GET", "/seller"))["name"] == "Weir Test GmbH"
