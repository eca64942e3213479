"""Secrets of API keys, user tokens and sessions: how they look, and the digest that alone is
stored."""

import hashlib
import hmac
import re
import secrets
import string

from gateway.errors import Unprocessable

BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase
SECRET_CHARACTERS = 43
"""43 of 62 characters hold 256 bits."""
ID_CHARACTERS = 20
KEY_PREFIX = "sk-weir-"
TOKEN_PREFIX = "wu-"  # noqa: S105 - the visible part of every token, not a secret
SESSION_PREFIX = "ws-"
CSRF_MESSAGE = b"weir csrf"
GIVEN_SECRET = re.compile(r"[A-Za-z0-9_-]{24,200}")


def new_key_secret() -> str:
    """A fresh API key: `sk-weir-` and 43 random characters."""
    return KEY_PREFIX + _random(SECRET_CHARACTERS)


def new_token_secret() -> str:
    """A fresh user token: `wu-` and 43 random characters."""
    return TOKEN_PREFIX + _random(SECRET_CHARACTERS)


def new_session_secret() -> str:
    """A fresh session: `ws-` and 43 random characters."""
    return SESSION_PREFIX + _random(SECRET_CHARACTERS)


def csrf_of(session_secret: str) -> str:
    """The token that goes with every change made in that session: 43 characters of base62. It says
    nothing of the secret, and no other site can read it."""
    key = session_secret.encode(errors="surrogatepass")
    number = int.from_bytes(hmac.digest(key, CSRF_MESSAGE, "sha256"))
    return _base62(number, SECRET_CHARACTERS)


def new_id(kind: str) -> str:
    """A fresh identifier such as `key_…`: no braces, so that it may be part of a Redis hash tag."""
    return f"{kind}_{_random(ID_CHARACTERS)}"


def id_of_form(kind: str, *form: str) -> str:
    """The identifier of what that form makes, the same each time that it is sent; `form` has a
    value that no other form has."""
    digest = hashlib.sha256("\n".join(form).encode(errors="surrogatepass")).digest()
    return f"{kind}_{_base62(int.from_bytes(digest), ID_CHARACTERS)}"


def digest_of(secret: str) -> bytes:
    """The SHA-256 that stands for a secret. No salt or stretching: it holds 256 random bits."""
    return hashlib.sha256(secret.encode(errors="surrogatepass")).digest()


def check_given_secret(secret: str, *, prefix: str = "") -> str:
    """`secret`, which a caller brings instead of having one made.

    Raises Unprocessable, which does not repeat it, where it lacks the prefix or is too short.
    """
    if not secret.startswith(prefix) or not GIVEN_SECRET.fullmatch(secret):
        raise Unprocessable(
            f"secret: must begin with '{prefix}' and have 24 to 200 letters, digits, - or _",
            param="secret",
        )
    return secret


def _random(characters: int) -> str:
    return "".join(secrets.choice(BASE62) for _ in range(characters))


def _base62(number: int, characters: int) -> str:
    written = []
    for _ in range(characters):
        number, digit = divmod(number, len(BASE62))
        written.append(BASE62[digit])
    return "".join(written)
