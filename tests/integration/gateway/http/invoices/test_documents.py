"""Documents over HTTP: one total in every format, and the same bytes for ever."""

import csv
import hashlib
import io
import re
from fractions import Fraction
from typing import Any

import pypdfium2
from finance_api import FinanceApi
from litestar import Litestar

from billing.documents.formats import Format
from billing.domain.invoicing.document import canonical_bytes
from billing.postgres.invoices import load_document
from gateway.http.openapi import openapi_document

USE: dict[str, Any] = {
    "prompt_tokens": 3_000_000,
    "cached_prompt_tokens": 1_000_000,
    "output_tokens": 1_234_567,
}


async def used(finance: FinanceApi, at: str = "2026-01-15T12:00:00Z") -> None:
    """One request of January."""
    await finance.world.use(at, **USE)
    await finance.world.roll_up()


def pdf_text(content: bytes) -> str:
    """What a reader of PDF finds."""
    pages = pypdfium2.PdfDocument(content)
    return "\n".join(page.get_textpage().get_text_range() for page in pages)


async def test_every_format_and_the_rows_say_the_same(finance: FinanceApi) -> None:
    """The PDF's total, the CSV's sum, the JSON's total; the lines' exact amounts are the sum over
    the rows to the pico."""
    await used(finance)
    await finance.world.use("2026-01-20T00:00:00Z", prompt_tokens=7, output_tokens=1)
    await finance.world.roll_up()
    issued = await finance.issued()
    path = f"/invoices/{issued['id']}"
    document = await finance.ok("GET", f"{path}.json")
    answer = await finance.call("GET", f"{path}.csv")
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    table = list(csv.DictReader(io.StringIO(answer.text, newline="")))
    assert document["total"] == issued["total"]
    assert sum(Fraction(row["amount"]) for row in table) == Fraction(issued["total"])
    exact = sum(Fraction(row["amount_exact"]) for row in table if row["row"] == "line")
    ((pico,),) = await finance.world.query(
        "SELECT sum(cost_pico) FROM usage_records WHERE tenant_id = 'acme'"
    )
    assert exact * 10**12 == pico
    answer = await finance.call("GET", f"{path}.pdf")
    assert answer.headers["cache-control"] == "private, no-store"
    assert answer.headers["content-type"] == "application/pdf"
    assert answer.headers["content-disposition"] == (
        f'attachment; filename="{issued["number"]}.pdf"'
    )
    said = pdf_text(answer.content)
    shown = re.search(r"Total \(USD\)\s+([\d.]+)", said)
    assert shown is not None
    assert shown[1] == issued["total"]
    for expected in (issued["number"], "Acme Spółka z o.o.", "Weir Test GmbH", "PO-4711"):
        assert expected in said


async def test_an_issued_invoice_is_the_same_bytes_for_ever(finance: FinanceApi) -> None:
    """Whatever becomes of the tenant, the seller, the prices, later records and payments; by id or
    by number."""
    await used(finance)
    issued = await finance.issued()

    async def files(named: str) -> list[bytes]:
        answers = [await finance.call("GET", f"/invoices/{named}.{each}") for each in Format]
        assert {answer.status_code for answer in answers} == {200}
        return [answer.content for answer in answers]

    before = await files(issued["id"])
    await finance.admin.json("PATCH", "/tenants/acme", {"name": "B", "billing_profile": {}})
    await finance.ok("PUT", "/seller", {"name": "Another", "country": "FR"})
    await used(finance, "2026-01-16T12:00:00Z")
    paid: dict[str, object] = {"amount": "1.00", "received_on": "2026-02-10", "reference": "b"}
    await finance.ok("POST", f"/invoices/{issued['id']}/payments", paid)
    await finance.ok("POST", f"/invoices/{issued['id']}/payments/b/reverse", {"reason": "r"})
    much = {**paid, "amount": "9.00", "reference": "c", "may_overpay": True}
    await finance.ok("POST", f"/invoices/{issued['id']}/payments", much)
    assert await files(issued["id"]) == before
    assert await files(issued["number"]) == before


async def test_the_hash_is_that_of_what_is_stored(finance: FinanceApi) -> None:
    """The answer, the JSON and the PDF name it."""
    await used(finance)
    issued = await finance.issued()
    stored = await finance.world.read(load_document, issued["id"])
    expected = hashlib.sha256(canonical_bytes(stored)).hexdigest()
    assert issued["content_hash"] == expected
    document = await finance.ok("GET", f"/invoices/{issued['id']}.json")
    assert document["content_hash"] == expected
    pdf = await finance.call("GET", f"/invoices/{issued['id']}.pdf")
    assert expected in pdf_text(pdf.content)


async def test_drafts_and_void_invoices_say_so(finance: FinanceApi) -> None:
    await used(finance)
    drafted = await finance.draft()
    answer = await finance.call("GET", f"/invoices/{drafted['id']}.pdf")
    assert "DRAFT" in pdf_text(answer.content)
    assert "draft-acme-2026-01.pdf" in answer.headers["content-disposition"]
    issued = await finance.issued()
    path = f"/invoices/{issued['id']}"
    assert "DRAFT" not in pdf_text((await finance.call("GET", f"{path}.pdf")).content)
    await finance.ok("POST", f"{path}/void", {"reason": "wrong address"})
    assert "VOID" in pdf_text((await finance.call("GET", f"{path}.pdf")).content)


async def test_the_openapi_document_has_the_files(finance: FinanceApi) -> None:
    """Each media type, and both shapes of JSON."""
    app: Litestar = finance.admin.client._transport.app  # type: ignore[attr-defined]
    document = openapi_document(app, version="1")
    for path in ("/billing/v1/invoices/{invoice_id}", "/billing/v1/credit-notes/{credit_note_id}"):
        content = document["paths"][path]["get"]["responses"]["200"]["content"]
        assert set(content) == {"application/json", "text/csv", "application/pdf"}
        assert len(content["application/json"]["schema"]["anyOf"]) == 2
