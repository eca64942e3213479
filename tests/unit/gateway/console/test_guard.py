"""Where a log-in may lead."""

import pytest

from gateway.console.guard import own_path


@pytest.mark.parametrize(
    "path", ["/console", "/console/live", "/console/tenants/acme/keys?cursor=a%20b&x=1"]
)
def test_a_page_of_the_console_may_be_led_to(path: str) -> None:
    """With what it was asked."""
    assert own_path(path) == path


@pytest.mark.parametrize(
    "path",
    [
        None,
        "",
        "https://evil.test/console",
        "//evil.test/console",
        "/\\evil.test",
        "\\\\evil.test/console",
        "javascript:alert(1)",
        "/consoles",
        "/admin/v1/users",
        "/console/../admin/v1/users",
        "/console/logout",
        "/console/login?next=/console/login",
        "/console/\r\nset-cookie: a=b",
        "/console/\x85",
        "/console/tenants/zürich",
        "//[",
        "//[/console",
        "console/live",
        "/console/" + "x" * 600,
    ],
)
def test_nothing_else_may_be(path: str | None) -> None:
    """No other site, no API, nothing that ends the session or begins another."""
    assert own_path(path) is None
