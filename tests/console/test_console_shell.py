"""What every page of the console has, in a browser: logging in and out, navigation, keys, theme,
and all of it without JavaScript."""

from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest
from console.browser import Visitor
from console.console_roles import PLACES, names_in_navigation, user
from playwright.sync_api import Page, expect
from weir_dev import WeirDev

Come = Callable[..., AbstractContextManager[Visitor]]


def test_a_wrong_password_is_refused_and_the_right_one_leads_on(
    visit: Come, console_system: WeirDev
) -> None:
    """The address stays typed, the password does not, and nothing says which was wrong."""
    admin = user(console_system, "admin")
    with visit() as visitor:
        visitor.expected.append("401")
        page = visitor.open("/console/login")
        page.get_by_label("E-mail").fill(admin["email"])
        page.get_by_label("Password").fill("correct horse battery staple")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_contain_text("do not belong together")
        expect(page.get_by_label("E-mail")).to_have_value(admin["email"])
        expect(page.get_by_label("Password")).to_have_value("")
        page.get_by_label("Password").fill(admin["password"])
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", level=1)).to_have_text("Live")
        assert page.url == f"{visitor.url}/console/live"


@pytest.mark.parametrize(
    ("asked", "led_to"),
    [
        ("/console/workers", "/console/workers"),
        ("https://evil.test/console", "/console/live"),
        ("//evil.test/console", "/console/live"),
        ("/\\evil.test/console", "/console/live"),
        ("javascript:alert(1)", "/console/live"),
        ("/console/logout", "/console/live"),
    ],
)
def test_a_log_in_leads_to_the_console_and_nowhere_else(
    visit: Come, console_system: WeirDev, asked: str, led_to: str
) -> None:
    """What the address asks for is followed only within."""
    with visit() as visitor:
        page = visitor.open("/console/login")
        page.goto(f"{visitor.url}/console/login?next=" + asked.replace("/", "%2F"))
        page.get_by_label("E-mail").fill(user(console_system, "viewer")["email"])
        page.get_by_label("Password").fill(user(console_system, "viewer")["password"])
        page.get_by_role("button", name="Log in").click()
        page.wait_for_url(f"{visitor.url}{led_to}")


def test_who_logs_out_is_out_in_every_tab(visit: Come, console_system: WeirDev) -> None:
    """And is led back to the page that was asked for after the next log-in."""
    with visit() as visitor:
        page = visitor.log_in(user(console_system, "viewer"))
        other = visitor.open("/console/workers")
        page.get_by_role("button", name="Log out").click()
        expect(page.get_by_role("status")).to_have_text("You are logged out.")
        other.goto(f"{visitor.url}/console/audit?action=key.*")
        expect(other.get_by_label("Password")).to_be_visible()
        _log_in(other, console_system, "viewer")
        other.wait_for_url(f"{visitor.url}/console/audit?action=key.*")


def test_a_page_that_updates_itself_says_that_the_session_has_ended(
    visit: Come, console_system: WeirDev
) -> None:
    """It leads to the log-in page, and from there back."""
    with visit() as visitor:
        visitor.expected.append("401")
        visitor.log_in(user(console_system, "operator"))
        page = visitor.open("/console/workers")
        expect(page.get_by_role("heading", level=1)).to_have_text("Workers")
        user_id = _id_of(console_system, "operator")
        ended = console_system.admin("DELETE", f"/admin/v1/users/{user_id}/sessions")
        assert ended.status < 300, ended.raw
        expect(page.get_by_role("status")).to_contain_text("Your session has ended")
        _log_in(page, console_system, "operator")
        page.wait_for_url(f"{visitor.url}/console/workers")


@pytest.mark.parametrize("role", PLACES)
def test_each_role_finds_its_places_and_no_others(
    visit: Come, console_system: WeirDev, role: str
) -> None:
    """By the list that is written by hand; each place opens under its own name."""
    with visit() as visitor:
        page = visitor.log_in(user(console_system, role))
        assert names_in_navigation(visitor) == list(PLACES[role])
        for name in PLACES[role]:
            places = page.get_by_role("navigation", name="Console", exact=True)
            with page.expect_response(lambda found: found.request.is_navigation_request()) as came:
                places.get_by_role("link", name=name, exact=True).click()
            assert came.value.status == 200, name
            here = places.get_by_role("link", name=name, exact=True)
            expect(here).to_have_attribute("aria-current", "page")


def test_keys_lead_through_the_console(visit: Come, console_system: WeirDev) -> None:
    """A letter after g, / to the search field, ? for the list; a field takes all of them."""
    with visit() as visitor:
        page = visitor.log_in(user(console_system, "admin"))
        page.keyboard.press("g")
        page.keyboard.press("t")
        page.wait_for_url(f"{visitor.url}/console/tenants")
        page.keyboard.press("/")
        search = page.get_by_role("searchbox")
        expect(search).to_be_focused()
        page.keyboard.type("g/w?")
        expect(search).to_have_value("g/w?")
        expect(page.get_by_role("dialog")).to_be_hidden()
        search.blur()
        page.keyboard.press("?")
        expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog", name="Keys")).to_be_hidden()
        page.keyboard.press("g")
        page.keyboard.press("w")
        page.wait_for_url(f"{visitor.url}/console/workers")
        page.keyboard.press("Tab")
        expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.locator("#main")).to_be_focused()


def test_the_theme_is_the_systems_until_one_is_chosen(visit: Come, console_system: WeirDev) -> None:
    """And then stays over pages and log-ins, without a script."""
    with visit(color_scheme="dark", java_script_enabled=False) as visitor:
        page = visitor.log_in(user(console_system, "viewer"))
        dark = _background(page)
        page.get_by_role("button", name="Light").first.click()
        expect(page.locator("html")).to_have_attribute("data-theme", "light")
        light = _background(page)
        assert light != dark
        page.goto(f"{visitor.url}/console/workers")
        assert _background(page) == light
        page.get_by_role("button", name="Log out").first.click()
        assert page.get_by_role("button", name="Light").get_attribute("aria-pressed") == "true"


def test_a_question_that_is_left_by_keyboard_is_closed(
    visit: Come, console_system: WeirDev
) -> None:
    """Cancel has the focus first; who goes on from it answers nothing behind their back."""
    seen = console_system.with_new_tenant()
    with visit() as visitor:
        page = visitor.log_in(user(console_system, "admin"))
        page.goto(f"{visitor.url}/console/tenants/{seen.tenant}")
        page.get_by_role("button", name="Suspend…").press("Enter")
        question = page.locator("#suspend")
        expect(question.get_by_role("button", name="Cancel")).to_be_focused()
        page.keyboard.press("Shift+Tab")
        expect(question).to_be_visible()
        page.keyboard.press("Tab")
        page.keyboard.press("Tab")
        expect(question).to_be_hidden()


def test_a_refused_form_goes_on_at_the_field_that_is_wrong(
    visit: Come, console_system: WeirDev
) -> None:
    """Which says what of it: the focus is there, not at the first field."""
    seen = console_system.with_new_tenant()
    with visit() as visitor:
        visitor.expected.append("422")
        page = visitor.log_in(user(console_system, "admin"))
        page.goto(f"{visitor.url}/console/tenants/{seen.tenant}/keys/new")
        expect(page.get_by_label("Name")).to_be_focused()
        page.get_by_label("Name").fill("nightly")
        networks = page.get_by_label("May be used from")
        networks.fill("10.0.0.0/8\n10.0.0.1/8")
        page.get_by_role("button", name="Make the key").click()
        expect(networks).to_be_focused()
        expect(page.locator("#f-ip_allow-error")).to_contain_text("'10.0.0.1/8' is none")


def test_a_legend_says_a_time_once_one_is_pointed_at(visit: Come, console_system: WeirDev) -> None:
    """Before that no name has a colon with nothing after it."""
    with visit() as visitor:
        page = visitor.log_in(user(console_system, "viewer"))
        page.goto(f"{visitor.url}/console/usage?period=last-month")
        rows = page.locator("#usage-plot .u-series")
        colon = "row => getComputedStyle(row.querySelector('th'), '::after').content"
        expect(rows.first).to_be_hidden()
        expect(rows.last).to_be_visible()
        assert rows.last.evaluate(colon) == "none"
        page.locator("#usage-plot .u-over").hover()
        expect(rows.first).to_contain_text("UTC")
        expect(rows.first).to_be_visible()
        assert rows.last.evaluate(colon) == '":"'


def test_limits_change_without_scripts(visit: Come, console_system: WeirDev) -> None:
    """From the log-in to the saved limit, with the effect shown between."""
    seen = console_system.with_new_tenant({"max_sequences": 9, "max_queued": 0, "max_wait_ms": 0})
    with visit(java_script_enabled=False) as visitor:
        page = visitor.log_in(user(console_system, "admin"))
        page.goto(f"{visitor.url}/console/tenants")
        page.get_by_role("searchbox").fill(seen.tenant)
        page.get_by_role("button", name="Find").click()
        page.locator(f'a[href="/console/tenants/{seen.tenant}"]').click()
        page.get_by_role("link", name="Change limits").click()
        page.get_by_label("Sequences at once", exact=True).first.fill("4")
        page.get_by_role("button", name="Show effect").click()
        row = page.get_by_role("row").filter(has_text="Sequences at once").first
        expect(row).to_contain_text("9")
        expect(row).to_contain_text("4")
        page.get_by_role("button", name="Save these limits").click()
        expect(page.get_by_role("status").first).to_contain_text("saved")
    kept = console_system.admin("GET", f"/admin/v1/tenants/{seen.tenant}").json
    assert kept["limits"]["max_sequences"] == 4


def _log_in(page: Page, system: WeirDev, role: str) -> None:
    page.get_by_label("E-mail").fill(user(system, role)["email"])
    page.get_by_label("Password").fill(user(system, role)["password"])
    page.get_by_role("button", name="Log in").click()


def _id_of(system: WeirDev, role: str) -> str:
    users = system.admin("GET", "/admin/v1/users?limit=100").json
    (found,) = [each for each in users["items"] if each["email"] == user(system, role)["email"]]
    identity: str = found["id"]
    return identity


def _background(page: Page) -> str:
    found: str = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return found
