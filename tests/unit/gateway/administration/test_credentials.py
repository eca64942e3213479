"""Secrets of keys and tokens."""

import re

import pytest

from gateway.administration import credentials
from gateway.errors import Unprocessable


def test_secrets_hold_256_bits_and_never_repeat() -> None:
    """43 of 62 characters each."""
    keys = {credentials.new_key_secret() for _ in range(200)}
    tokens = {credentials.new_token_secret() for _ in range(200)}
    assert (len(keys), len(tokens)) == (200, 200)
    assert all(re.fullmatch(r"sk-weir-[0-9A-Za-z]{43}", key) for key in keys)
    assert all(re.fullmatch(r"wu-[0-9A-Za-z]{43}", token) for token in tokens)
    assert len({character for key in keys for character in key[8:]}) == 62


def test_ids_fit_into_a_hash_tag() -> None:
    """No braces, no colon, no space."""
    assert re.fullmatch(r"key_[0-9A-Za-z]{20}", credentials.new_id("key"))


def test_a_digest_is_sha_256_whatever_is_presented() -> None:
    """Also of text that is no Unicode: a client may send any bytes."""
    known = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
    assert credentials.digest_of("test").hex() == known
    assert len(credentials.digest_of("\udcff\x00")) == 32


@pytest.mark.parametrize(
    "secret", ["", "sk-weir-", "sk-weir-short", "x" * 60, "sk-weir-" + "ä" * 40]
)
def test_a_weak_secret_is_refused_unrepeated(secret: str) -> None:
    """Too short, without its prefix, or of other characters."""
    with pytest.raises(Unprocessable) as refused:
        credentials.check_given_secret(secret, prefix=credentials.KEY_PREFIX)
    assert len(secret) < 9 or secret not in refused.value.message


def test_a_csrf_token_is_its_sessions_and_says_nothing_of_it() -> None:
    """The same each time, another for another session, and not what is stored."""
    one, other = credentials.new_session_secret(), credentials.new_session_secret()
    assert re.fullmatch(r"ws-[0-9A-Za-z]{43}", one)
    csrf = credentials.csrf_of(one)
    assert re.fullmatch(r"[0-9A-Za-z]{43}", csrf)
    assert csrf == credentials.csrf_of(one) != credentials.csrf_of(other)
    assert csrf not in one
    assert csrf != credentials.digest_of(one).hex()
    assert credentials.csrf_of("\udcff") != credentials.csrf_of("")
