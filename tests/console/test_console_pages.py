"""Every page of the console as each role sees it: nothing serious by axe, in both themes, on a desk
and on a telephone of 360 px, where nothing is wider than the screen."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, NamedTuple

import pytest
from console.axe import bring_axe, grave_findings
from console.browser import DESKTOP, PHONE, Visitor, visitor
from console.console_pages import GLOBEX, NOBODY, PAGES, Seen
from console.console_roles import user, user_of
from playwright.sync_api import Browser, Page, ViewportSize
from weir_dev import WeirDev


class Look(NamedTuple):
    """How a page is looked at."""

    theme: Literal["light", "dark"]
    size: ViewportSize


LOOKS = (Look("light", DESKTOP), Look("dark", PHONE))
"""Both themes and both sizes; the theme decides colours alone and the size the layout alone, so no
other pair of them has anything new."""
TOO_WIDE = """() => [...document.querySelectorAll("body *")]
    .filter((each) => each.getBoundingClientRect().right > innerWidth + 1
        && !each.closest(".table, pre, .plot, [popover], dialog, .sr-only, .skip"))
    .map((each) => each.outerHTML.slice(0, 120)).slice(0, 3)"""


@pytest.fixture(scope="module")
def subjects(console_system: WeirDev) -> Mapping[str, str]:
    """What names in the paths stand for."""
    admin = console_system.admin
    (key, *_) = admin("GET", "/admin/v1/tenants/acme/keys").json["items"]
    (request, *_) = admin("GET", "/admin/v1/requests?tenant_id=acme&limit=1").json["items"]
    people = admin("GET", "/admin/v1/users?limit=100").json["items"]
    (viewer,) = [each for each in people if each["role"] == "viewer"]
    return {
        "key": key["id"],
        "request": request["id"],
        "user": viewer["id"],
        "model": console_system.model,
        "draft": _drafted(console_system, "acme"),
        **_settled(console_system),
    }


@pytest.fixture(scope="module")
def looker_of(browser: Browser, console_system: WeirDev) -> Iterator[Callable[[str], Visitor]]:
    """Somebody of a role, logged in, with one page for all that they look at, until another role's
    comes."""
    here: dict[str, Visitor] = {}
    with ExitStack() as stack:

        def come(role: str) -> Visitor:
            if role not in here:
                here.clear()
                stack.close()
                here[role] = stack.enter_context(visitor(browser, console_system.gateway()))
                bring_axe(here[role].context)
                if role == NOBODY:
                    here[role].page()
                else:
                    here[role].log_in(_person(console_system, role))
            return here[role]

        yield come


@pytest.mark.parametrize("seen", PAGES, ids=[f"{seen.role} {seen.path}" for seen in PAGES])
def test_a_page_is_for_everybody(
    looker_of: Callable[[str], Visitor], subjects: Mapping[str, str], seen: Seen
) -> None:
    """Nothing serious or critical, and no wider than a telephone."""
    looker = looker_of(seen.role)
    (page,) = looker.context.pages
    looker.problems.clear()
    looker.expected[:] = [] if seen.status == 200 else [f"status of {seen.status}"]
    _look(page, LOOKS[0])
    address = looker.url + seen.path.format(**subjects)
    answer = page.goto(address)
    assert answer is not None
    assert (answer.status, answer.url) == (seen.status, address)
    for look in LOOKS:
        _look(page, look)
        assert grave_findings(page) == [], look
        scrolled = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert scrolled <= 0, (look, page.evaluate(TOO_WIDE))
    assert looker.unexpected() == []


def _look(page: Page, look: Look) -> None:
    page.emulate_media(color_scheme=look.theme)
    page.set_viewport_size(look.size)


def _person(system: WeirDev, role: str) -> dict[str, Any]:
    return user_of(system, "tenant_admin", "globex") if role == GLOBEX else user(system, role)


def _drafted(system: WeirDev, tenant: str) -> str:
    """The invoice of the month that `weir dev --history` made up usage of."""
    month = f"{datetime.now(UTC).replace(day=1) - timedelta(days=1):%Y-%m}"
    body = {"tenant_id": tenant, "period": month}
    drafted: str = _done(system, "/billing/v1/invoices", body)["id"]
    return drafted


def _settled(system: WeirDev) -> Mapping[str, str]:
    """An issued invoice of which something is paid and something credited."""
    invoice = _drafted(system, "globex")
    path = f"/billing/v1/invoices/{invoice}"
    _done(system, f"{path}/issue", {"override": {"reason": "made up for a test"}})
    paid = {"amount": "0.01", "received_on": f"{datetime.now(UTC):%Y-%m-%d}", "reference": "a test"}
    lines = [{"position": 1, "amount": "0.01"}]
    credited = {"invoice_id": invoice, "lines": lines, "reason": "goodwill"}
    return {
        "invoice": invoice,
        "payment": _done(system, f"{path}/payments", paid)["id"],
        "credit_note": _done(system, "/billing/v1/credit-notes", credited)["id"],
    }


def _done(system: WeirDev, path: str, body: dict[str, Any]) -> Any:
    reply = system.admin("POST", path, body)
    assert reply.status in (200, 201), reply.raw
    return reply.json
