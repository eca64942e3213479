"""Debian's Chromium, driven by Playwright, and what no page of the console may ever do in it."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, BrowserContext, Page, ViewportSize, sync_playwright

NAMES = ("chromium", "chromium-browser")
DESKTOP: ViewportSize = {"width": 1280, "height": 900}
PHONE: ViewportSize = {"width": 360, "height": 740}
PATIENCE_MS = 15_000
"""How long Playwright waits for what a page is to show: a busy machine is not what is tested."""


class BrowserUnusable(Exception):
    """There is no Chromium; the message says what is needed, in one line."""


@contextmanager
def chromium() -> Iterator[Browser]:
    """The browser until the block ends. Raises BrowserUnusable."""
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        raise BrowserUnusable("these tests need Debian's chromium: not found in PATH")
    options = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=options)
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Visitor:
    """A person at a browser of their own: cookies and pages of one test, and what went wrong."""

    context: BrowserContext
    url: str
    """The gateway's address, without a path."""
    problems: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)
    """Parts of problems that a test brings about itself."""

    def page(self) -> Page:
        """Another page, whose every problem is kept."""
        page = self.context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        page.on("console", lambda said: self._heard(said.type, said.text))
        page.on("pageerror", lambda error: self._note(f"script: {error}"))
        page.on("request", lambda request: self._asked(request.url))
        page.on("requestfailed", self._failed)
        return page

    def open(self, path: str) -> Page:
        """A page of the console."""
        page = self.page()
        page.goto(self.url + path)
        return page

    def log_in(self, user: dict[str, Any]) -> Page:
        """Log in as one of `ready.json`'s users; the page that they come to."""
        page = self.open("/console/login")
        page.get_by_label("E-mail").fill(user["email"])
        page.get_by_label("Password").fill(user["password"])
        page.get_by_role("button", name="Log in").click()
        page.wait_for_url(lambda url: "/console/login" not in url)
        return page

    def unexpected(self) -> list[str]:
        """Problems that the test did not bring about."""
        return [said for said in self.problems if not any(part in said for part in self.expected)]

    def _heard(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self._note(f"console {kind}: {text}")

    def _asked(self, url: str) -> None:
        parts = urlsplit(url)
        if (
            parts.scheme not in ("data", "blob", "about")
            and f"{parts.netloc}" != urlsplit(self.url).netloc
        ):
            self._note(f"third party: {url}")

    def _failed(self, request: Any) -> None:
        # A page that is left, or replaced by its next state, drops what it was still asking for.
        if "ERR_ABORTED" not in (request.failure or ""):
            self._note(f"failed: {request.url} {request.failure}")

    def _note(self, said: str) -> None:
        self.problems.append(said)


@contextmanager
def visitor(browser: Browser, url: str, **options: Any) -> Iterator[Visitor]:
    """Somebody with an empty browser; `options` are those of a Playwright context. Fails at the end
    where a page had an error, broke its security policy or asked another host."""
    context = browser.new_context(**{"viewport": DESKTOP, **options})
    try:
        came = Visitor(context, url)
        yield came
        assert came.unexpected() == []
    finally:
        context.close()
