"""A key is replaced, with time for the program that has it, and the old one revoked."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager

from console.browser import Visitor
from console.console_roles import user
from playwright.sync_api import expect
from weir_dev import WeirDev

Come = Callable[..., AbstractContextManager[Visitor]]


def test_a_key_is_rotated_with_grace_and_the_old_one_revoked(
    visit: Come, console_system: WeirDev
) -> None:
    """Both work meanwhile; a second after the revocation the old one is refused by every gateway,
    and the new one is not. Its secret is shown once."""
    seen = console_system.with_new_tenant()
    old = seen.key()
    with visit() as visitor:
        page = visitor.log_in(user(console_system, "admin"))
        page.goto(f"{visitor.url}/console/tenants/{seen.tenant}/keys")
        page.get_by_role("table").get_by_role("link").first.click()
        of_old = page.url
        page.get_by_label("The old key works for").fill("2")
        page.get_by_label("Unit").select_option("hours")
        page.get_by_role("button", name="Make the new key").click()
        new = page.locator("#secret").inner_text()
        assert new != old
        _answered(seen, new, 200)
        _answered(seen, old, 200)
        page.get_by_role("link", name="I have kept it").click()
        assert new not in page.content()
        page.goto(of_old)
        expect(page.get_by_text("being replaced")).to_be_visible()
        page.get_by_role("button", name="Revoke…").click()
        page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
        expect(page.get_by_role("status").first).to_contain_text("is revoked")
        _answered(seen, old, 401)
        _answered(seen, new, 200)
        expect(page.get_by_text("revoked", exact=True).first).to_be_visible()


def _answered(system: WeirDev, key: str, status: int, *, within_s: float = 1) -> None:
    """Every gateway answers so, at the latest then."""
    deadline = time.monotonic() + within_s
    for index in range(len(system.ready["gateways"])):
        while True:
            asked = time.monotonic()
            found = system.request("GET", system.gateway(index) + "/v1/models", token=key).status
            if found == status:
                break
            assert asked < deadline, (index, found)


def test_a_double_click_makes_one_key_and_shows_its_secret(
    visit: Come, console_system: WeirDev
) -> None:
    """Of the two answers the second would say that the key is there already, without its secret."""
    seen = console_system.with_new_tenant()
    with visit() as visitor:
        page = visitor.log_in(user(console_system, "admin"))
        keys = f"{visitor.url}/console/tenants/{seen.tenant}/keys"
        page.goto(keys)
        before = page.get_by_role("table").get_by_role("row").count()
        page.goto(f"{keys}/new")
        page.get_by_label("Name").fill("twice")
        page.get_by_role("button", name="Make the key").dblclick(delay=60)
        _answered(seen, page.locator("#secret").inner_text(), 200)
        page.goto(keys)
        expect(page.get_by_role("table").get_by_role("row")).to_have_count(before + 1)
