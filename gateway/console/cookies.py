"""The console's own cookies: the theme, and what is to be said on the next page."""

import base64
import binascii
import hmac
from typing import Literal

import msgspec
from litestar.datastructures import Cookie

THEME_COOKIE = "weir_theme"
FLASH_COOKIE = "weir_flash"
THEMES = ("system", "light", "dark")
_PATH = "/console"
_YEAR_S = 365 * 24 * 3600
_FLASH_S = 60
_SAID_CHARACTERS_MAX = 1_000


class Flash(msgspec.Struct, frozen=True):
    """A sentence that is shown once, after a form was sent. Never a secret: it is in a cookie."""

    kind: Literal["done", "failed"]
    said: str


def theme_of(cookies: dict[str, str]) -> str:
    """`system`, `light` or `dark`."""
    theme = cookies.get(THEME_COOKIE, "system")
    return theme if theme in THEMES else "system"


def theme_cookie(theme: str) -> Cookie:
    """Keeps a theme for a year. A script has no need of it: the server writes it into the page."""
    return _cookie(THEME_COOKIE, theme, max_age_s=_YEAR_S)


def flash_cookie(flash: Flash, csrf: str) -> Cookie:
    """Carries `flash` to the next page of that session, and of no other."""
    cut = msgspec.structs.replace(flash, said=flash.said[:_SAID_CHARACTERS_MAX])
    content = msgspec.json.encode(cut)
    value = base64.urlsafe_b64encode(_seal(content, csrf) + content).rstrip(b"=").decode()
    return _cookie(FLASH_COOKIE, value, max_age_s=_FLASH_S)


def no_flash_cookie() -> Cookie:
    """What was said is not said again."""
    return _cookie(FLASH_COOKIE, "", max_age_s=0)


def flash_of(cookies: dict[str, str], csrf: str) -> Flash | None:
    """What is to be said, if this session was told so."""
    value = cookies.get(FLASH_COOKIE)
    if not value:
        return None
    try:
        raw = base64.urlsafe_b64decode(value + "=" * (-len(value) % 4))
        seal, content = raw[:32], raw[32:]
        if not hmac.compare_digest(seal, _seal(content, csrf)):
            return None
        return msgspec.json.decode(content, type=Flash)
    except (binascii.Error, ValueError, msgspec.DecodeError):
        return None


def _seal(content: bytes, csrf: str) -> bytes:
    return hmac.digest(csrf.encode(), b"flash" + content, "sha256")


def _cookie(name: str, value: str, *, max_age_s: int) -> Cookie:
    return Cookie(name, value=value, path=_PATH, max_age=max_age_s, httponly=True, samesite="lax")
