"""Pictures of the console for its documentation, made with
`WEIR_SCREENSHOTS=folder .venv/bin/python -m pytest tests/console/screenshots.py` and by no target:
what the pages look like is for people to judge. Of few colours, so that they are small."""

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from io import BytesIO
from pathlib import Path

from console.browser import PHONE, Visitor
from console.console_roles import user
from console.test_story_limits import Client, eventually
from PIL import Image
from playwright.sync_api import Page
from weir_dev import WeirDev

Come = Callable[..., AbstractContextManager[Visitor]]
BYTES_MAX = 150_000
HEIGHT = 1_000


def test_pictures_are_made(visit: Come, console_system: WeirDev) -> None:
    """The live page and the effect of a limit while a client runs, usage, an invoice, what a tenant
    sees, and a telephone in the dark."""
    acme = console_system
    acme.set_limits("acme", max_sequences=8, tpm=400_000, rpm=600, max_queued=20, max_wait_ms=5_000)
    eventually(lambda: acme.chat().status == 200, within_s=60)
    client = Client(acme)
    with client.running():
        eventually(lambda: acme.leases("acme") >= 4)
        with visit() as visitor:
            page = visitor.log_in(user(acme, "admin"))
            page.set_viewport_size({"width": 1280, "height": HEIGHT})
            page.get_by_role("row").filter(has_text="acme").first.wait_for()
            _picture(page, "live")
            page.goto(f"{visitor.url}/console/tenants/acme/limits")
            page.get_by_label("Sequences at once", exact=True).first.fill("2")
            page.get_by_role("button", name="Show effect").click()
            page.get_by_role("button", name="Save these limits").wait_for()
            _picture(page, "limits-effect")
        with visit(color_scheme="dark", viewport=PHONE, device_scale_factor=2) as visitor:
            page = visitor.log_in(user(acme, "operator"))
            page.locator("#live-tenants").wait_for()
            _picture(page, "phone")
        with visit() as visitor:
            page = visitor.log_in(user(acme, "tenant_admin"))
            _picture(page, "own")
    with visit() as visitor:
        page = visitor.log_in(user(acme, "finance"))
        page.goto(f"{visitor.url}/console/usage?period=last-month")
        page.locator(".plot canvas").first.wait_for()
        _picture(page, "usage")
        page.goto(f"{visitor.url}/console/money/invoices/new")
        page.get_by_label("Tenant").fill("acme")
        page.get_by_role("button", name="Draft", exact=True).click()
        page.get_by_role("table", name="Lines").or_(
            page.get_by_role("heading", name="Lines")
        ).first.wait_for()
        _picture(page, "invoice")


def _picture(page: Page, name: str) -> None:
    path = Path(os.environ["WEIR_SCREENSHOTS"]) / f"{name}.png"
    with Image.open(BytesIO(page.screenshot())) as drawn:
        drawn.convert("RGB").quantize(128).save(path, optimize=True)
    assert path.stat().st_size <= BYTES_MAX, f"{path} is too large"
