"""The secrets of `weir dev`, kept from one start to the next and from one release to the next."""

import stat
from pathlib import Path

import click
import msgspec
import pytest

from gateway.dev_secrets import USERS, DevSecrets, kept_secrets
from gateway.domain.account import Role


def test_they_are_made_once(tmp_path: Path) -> None:
    """For their owner's eyes; no two users share one."""
    path = tmp_path / "secrets.json"
    made = kept_secrets(path)
    assert kept_secrets(path) == made
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert {role: user.email for role, user in made.users.items()} == USERS
    words = [word for user in made.users.values() for word in (user.password, user.token)]
    assert len(set(words)) == 2 * len(USERS)


def test_an_earlier_releases_file_gains_the_users_it_lacks(tmp_path: Path) -> None:
    """What it had stays as it was, keys included, and what it gains is found again."""
    path = tmp_path / "secrets.json"
    made = kept_secrets(path)
    early = {role: made.users[role] for role in (Role.ADMIN, Role.FINANCE)}
    path.write_bytes(msgspec.json.encode(msgspec.structs.replace(made, users=early)))
    grown = kept_secrets(path)
    assert {role: grown.users[role] for role in early} == early
    assert (grown.tenants, grown.cache_salt) == (made.tenants, made.cache_salt)
    assert grown.users.keys() == USERS.keys()
    assert msgspec.json.decode(path.read_bytes(), type=DevSecrets) == grown == kept_secrets(path)


def test_a_file_that_cannot_be_read_is_left_as_it_is(tmp_path: Path) -> None:
    """It may be mended; it is named, not shown."""
    path = tmp_path / "secrets.json"
    path.write_text('{"cache_salt": "s3cret"')
    with pytest.raises(click.ClickException) as refused:
        kept_secrets(path)
    assert str(path) in refused.value.message
    assert "s3cret" not in refused.value.message
    assert path.read_text() == '{"cache_salt": "s3cret"'
