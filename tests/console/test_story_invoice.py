"""Finance bills last month: a draft, the invoice, its PDF, and a credit note."""

import io
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from console.browser import Visitor
from console.console_roles import user
from playwright.sync_api import Page, expect
from pypdf import PdfReader
from weir_dev import WeirDev

Come = Callable[..., AbstractContextManager[Visitor]]


def test_last_month_is_drafted_issued_downloaded_and_credited(
    visit: Come, console_system: WeirDev
) -> None:
    """The PDF has the number and the total of the page; the tenant sees the invoice."""
    with visit() as visitor:
        page = visitor.log_in(user(console_system, "finance"))
        page.get_by_role("link", name="Invoices", exact=True).first.click()
        page.get_by_role("link", name="Draft an invoice").first.click()
        page.get_by_label("Tenant").fill("acme")
        page.get_by_role("button", name="Draft", exact=True).click()
        expect(page.get_by_text("This is a draft.")).to_be_visible()
        page.get_by_role("link", name="Issue…").click()
        reason = page.get_by_label("Why it is issued nevertheless")
        if reason.count():
            reason.fill("made up for a test")
        page.get_by_role("button", name=re.compile("^Issue")).click()
        expect(page.get_by_role("status").first).to_contain_text("It is issued as")
        number = page.get_by_role("heading", level=1).inner_text()
        total = _total(page)
        text = _pdf_text(page)
        assert number in text
        assert total in text
        page.get_by_role("link", name="Credit note…").click()
        page.get_by_label("How much").select_option("lines")
        page.get_by_label("Line 1", exact=False).first.fill("0.01")
        page.get_by_label("Reason").fill("goodwill")
        page.get_by_role("button", name="Issue the credit note").click()
        expect(page.get_by_role("heading", level=1)).to_have_text(re.compile("^CN-"))
        credited = page.get_by_role("heading", level=1).inner_text()
        expect(page.get_by_text("goodwill").first).to_be_visible()
        text = _pdf_text(page)
        assert credited in text
        assert number in text
    with visit() as visitor:
        page = visitor.log_in(user(console_system, "tenant_admin"))
        page.goto(f"{visitor.url}/console/own/invoices")
        page.get_by_role("link", name=number, exact=True).click()
        expect(page.get_by_role("heading", level=1)).to_contain_text(number)
        assert _total(page) == total


def _total(page: Page) -> str:
    """The figures of the invoice's total, without what they are of."""
    shown = page.get_by_role("row").filter(has_text=re.compile("^Total")).last.inner_text()
    found = re.search(r"[\d,]+\.\d\d", shown)
    assert found is not None, shown
    return found[0]


def _pdf_text(page: Page) -> str:
    with page.expect_download() as started:
        page.get_by_role("link", name="PDF", exact=True).click()
    content = Path(started.value.path()).read_bytes()
    return "\n".join(each.extract_text() for each in PdfReader(io.BytesIO(content)).pages)
