"""The console's own cookies: what another session or a stranger wrote there is not shown."""

import pytest

from gateway.console.cookies import (
    FLASH_COOKIE,
    THEME_COOKIE,
    Flash,
    flash_cookie,
    flash_of,
    no_flash_cookie,
    theme_cookie,
    theme_of,
)

SAID = Flash("done", "w1 drains; żółw <b>")


def kept(flash: Flash, csrf: str) -> dict[str, str]:
    """What the browser sends back."""
    return {FLASH_COOKIE: flash_cookie(flash, csrf).value or ""}


def test_what_is_said_comes_back_once_in_the_same_session() -> None:
    """Whatever letters it has."""
    assert flash_of(kept(SAID, "a"), "a") == SAID
    assert no_flash_cookie().max_age == 0


def test_another_sessions_sentence_is_not_shown() -> None:
    """Nor one that somebody made up, nor none."""
    cookies = kept(SAID, "a")
    assert flash_of(cookies, "b") is None
    assert flash_of({}, "a") is None


@pytest.mark.parametrize("change", [lambda v: v[:-3], lambda v: "A" + v[1:], lambda _: "ż!"])
def test_a_changed_cookie_says_nothing(change: object) -> None:
    """Cut, changed, or nonsense."""
    value = kept(SAID, "a")[FLASH_COOKIE]
    assert callable(change)
    assert flash_of({FLASH_COOKIE: change(value)}, "a") is None


def test_a_long_sentence_fits_into_a_cookie() -> None:
    """Browsers drop cookies of more than 4,096 bytes."""
    value = kept(Flash("failed", "x" * 50_000), "a")[FLASH_COOKIE]
    assert len(value) < 4_000


def test_scripts_do_not_see_them() -> None:
    """And other sites' requests do not carry them."""
    for cookie in (theme_cookie("dark"), flash_cookie(SAID, "a")):
        assert cookie.httponly
        assert cookie.samesite == "lax"
        assert cookie.path == "/console"


def test_a_theme_that_is_none_is_the_systems() -> None:
    """Only three names are ever written into a page."""
    assert theme_of({THEME_COOKIE: "dark"}) == "dark"
    assert theme_of({THEME_COOKIE: '"><script>'}) == "system"
    assert theme_of({}) == "system"
