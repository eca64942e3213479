"""Every page of the console as each role sees it: nothing serious by axe, in both themes, on a desk
and on a telephone of 360 px, where nothing is wider than the screen."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pytest
from console.axe import grave_findings
from console.browser import DESKTOP, PHONE, Visitor
from console.console_roles import user
from weir_dev import WeirDev

Come = Callable[..., AbstractContextManager[Visitor]]


class Look(NamedTuple):
    """How a page is looked at."""

    theme: str
    size: Mapping[str, int]


USUAL = (Look("light", DESKTOP), Look("dark", PHONE))
ALL = (*USUAL, Look("dark", DESKTOP), Look("light", PHONE))
"""The pages with the most on them in both themes at both sizes; all others are made of the same."""

PAGES: tuple[tuple[str, str, tuple[Look, ...]], ...] = (
    ("admin", "/console/live", ALL),
    ("admin", "/console/tenants", ALL),
    ("admin", "/console/tenants?search=nobody-is-called-that", USUAL),
    ("admin", "/console/tenants/-/new", USUAL),
    ("admin", "/console/tenants/-/limits?tenant=acme&tenant=globex", USUAL),
    ("admin", "/console/tenants/acme", ALL),
    ("admin", "/console/tenants/acme/profile", USUAL),
    ("admin", "/console/tenants/acme/limits", ALL),
    ("admin", "/console/tenants/acme/keys", USUAL),
    ("admin", "/console/tenants/acme/keys/new", USUAL),
    ("admin", "/console/tenants/acme/keys/{key}", USUAL),
    ("admin", "/console/tenants/acme/keys/{key}/limits", USUAL),
    ("admin", "/console/usage", ALL),
    ("admin", "/console/requests", USUAL),
    ("admin", "/console/requests/{request}", USUAL),
    ("admin", "/console/workers", ALL),
    ("admin", "/console/workers/new", USUAL),
    ("admin", "/console/workers/models/new", USUAL),
    ("admin", "/console/money/prices", USUAL),
    ("admin", "/console/money/prices/new", USUAL),
    ("admin", "/console/money/prices/import", USUAL),
    ("admin", "/console/money/prices/plans", USUAL),
    ("admin", "/console/money/invoices", USUAL),
    ("admin", "/console/money/invoices/new", USUAL),
    ("admin", "/console/money/invoices/seller", USUAL),
    ("admin", "/console/money/invoices/{invoice}", ALL),
    ("admin", "/console/money/invoices/{invoice}/issue", USUAL),
    ("admin", "/console/money/credit-notes", USUAL),
    ("admin", "/console/money/budget-alerts", USUAL),
    ("admin", "/console/money/unit-cost", USUAL),
    ("admin", "/console/money/reconciliation", USUAL),
    ("admin", "/console/audit", USUAL),
    ("admin", "/console/audit/chain", USUAL),
    ("admin", "/console/users", USUAL),
    ("admin", "/console/users/new", USUAL),
    ("admin", "/console/users/{user}", USUAL),
    ("admin", "/console/account", USUAL),
    ("operator", "/console/workers", USUAL),
    ("operator", "/console/tenants/acme", USUAL),
    ("finance", "/console/tenants/acme/limits", USUAL),
    ("finance", "/console/money/invoices/{invoice}", USUAL),
    ("viewer", "/console/live", USUAL),
    ("viewer", "/console/tenants/acme/limits", USUAL),
    ("viewer", "/console/audit", USUAL),
    ("viewer", "/console/requests/{request}", USUAL),
    ("tenant_admin", "/console/own", ALL),
    ("tenant_admin", "/console/own/keys", USUAL),
    ("tenant_admin", "/console/own/keys/new", USUAL),
    ("tenant_admin", "/console/own/keys/{key}", USUAL),
    ("tenant_admin", "/console/own/keys/{key}/limits", USUAL),
    ("tenant_admin", "/console/own/usage", USUAL),
    ("tenant_admin", "/console/requests", USUAL),
    ("tenant_admin", "/console/requests/{request}", USUAL),
    ("tenant_admin", "/console/own/invoices", USUAL),
    ("tenant_admin", "/console/own/credit-notes", USUAL),
    ("tenant_admin", "/console/account", USUAL),
    ("tenant_member", "/console/own", USUAL),
    ("tenant_member", "/console/own/keys", USUAL),
)
TOO_WIDE = """() => [...document.querySelectorAll("body *")]
    .filter((each) => each.getBoundingClientRect().right > innerWidth + 1
        && !each.closest(".table, pre, .plot, [popover], dialog, .sr-only, .skip"))
    .map((each) => each.outerHTML.slice(0, 120)).slice(0, 3)"""


@pytest.fixture(scope="session")
def subjects(console_system: WeirDev) -> Mapping[str, str]:
    """What names in the paths above stand for."""
    admin = console_system.admin
    (key, *_) = admin("GET", "/admin/v1/tenants/acme/keys").json["items"]
    (request, *_) = admin("GET", "/admin/v1/requests?tenant_id=acme&limit=1").json["items"]
    people = admin("GET", "/admin/v1/users?limit=100").json["items"]
    (viewer,) = [each for each in people if each["role"] == "viewer"]
    body = {"tenant_id": "globex", "period": last_month()}
    drafted = admin("POST", "/billing/v1/invoices", body)
    assert drafted.status in (200, 201), drafted.raw
    return {
        "key": key["id"],
        "request": request["id"],
        "user": viewer["id"],
        "invoice": drafted.json["id"],
    }


@pytest.fixture(scope="session")
def sessions() -> dict[str, Any]:
    """The cookies of each role that has logged in."""
    return {}


@pytest.fixture
def signed_in(visit: Come, console_system: WeirDev, sessions: dict[str, Any]) -> Come:
    """Somebody of a role, who logs in once."""

    @contextmanager
    def come(role: str) -> Iterator[Visitor]:
        with visit(storage_state=sessions.get(role)) as visitor:
            if role not in sessions:
                visitor.log_in(user(console_system, role))
                sessions[role] = visitor.context.storage_state()
            yield visitor

    return come


def last_month() -> str:
    """As `2026-10`: what `weir dev --history` made up usage of."""
    return f"{datetime.now(UTC).replace(day=1) - timedelta(days=1):%Y-%m}"


@pytest.mark.parametrize(("role", "path", "looks"), PAGES, ids=[" ".join(row[:2]) for row in PAGES])
def test_a_page_is_for_everybody(
    signed_in: Come,
    subjects: Mapping[str, str],
    role: str,
    path: str,
    looks: tuple[Look, ...],
) -> None:
    """Nothing serious or critical, and no wider than a telephone."""
    with signed_in(role) as visitor:
        page = visitor.page()
        answer = page.goto(visitor.url + path.format(**subjects))
        assert answer is not None
        assert answer.status == 200
        for look in looks:
            page.emulate_media(color_scheme="dark" if look.theme == "dark" else "light")
            page.set_viewport_size({"width": look.size["width"], "height": look.size["height"]})
            assert grave_findings(page) == [], look
            scrolled = page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert scrolled <= 0, (look, page.evaluate(TOO_WIDE))
