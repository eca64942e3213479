"""The people of a tenant see what is theirs, and nothing of anybody else."""

from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest
from console.browser import Visitor
from console.console_roles import user
from playwright.sync_api import expect
from weir_dev import WeirDev

Come = Callable[..., AbstractContextManager[Visitor]]
OWN = (
    "/console/own",
    "/console/own/keys",
    "/console/own/usage",
    "/console/own/invoices",
    "/console/requests",
    "/console/account",
)
OTHERS = ("/console/tenants/globex", "/console/live", "/console/audit", "/console/users")


@pytest.mark.parametrize("role", ["tenant_admin", "tenant_member"])
def test_own_pages_name_no_other_tenant(visit: Come, console_system: WeirDev, role: str) -> None:
    """Nor a key, a request or an invoice of one, whatever the address asks for."""
    key, request = _of_globex(console_system)
    with visit() as visitor:
        visitor.expected += ["status of 403", "status of 404"]
        page = visitor.log_in(user(console_system, role))
        for path in OWN:
            if (role, path) == ("tenant_member", "/console/own/invoices"):
                continue
            for query in ("", "?tenant_id=globex"):
                page.goto(visitor.url + path + query)
                expect(page.get_by_role("heading", level=1)).to_be_visible()
                shown = page.locator("main").inner_text().lower()
                assert "globex" not in shown.replace("tenant_id=globex", ""), path
                assert key not in shown
        for path in (f"/console/own/keys/{key}", f"/console/requests/{request}"):
            answer = page.goto(visitor.url + path)
            assert answer is not None
            assert answer.status == 404, path
            nothing = page.goto(visitor.url + path[:-4] + "zzzz")
            assert nothing is not None
            assert nothing.status == 404
        for path in OTHERS:
            answer = page.goto(visitor.url + path)
            assert answer is not None
            assert answer.status == 403, path


def _of_globex(system: WeirDev) -> tuple[str, str]:
    (key, *_) = system.admin("GET", "/admin/v1/tenants/globex/keys").json["items"]
    (request, *_) = system.admin("GET", "/admin/v1/requests?tenant_id=globex&limit=1").json["items"]
    return key["id"], request["id"]
