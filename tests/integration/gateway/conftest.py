"""Argon2 at hardly any cost, in this process, for all who only make users or log in: at full cost
it takes 64 MiB and a quarter of a second of CPU each time. Processes of their own pay the whole."""

from collections.abc import Iterator

import pytest
from argon2 import PasswordHasher

from gateway.administration import passwords

FULL = passwords._hasher
CHEAP = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)


def _hash_with(hasher: PasswordHasher, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(passwords, "_hasher", hasher)
    patch.setattr(passwords, "NOBODYS_HASH", passwords._nobodys(hasher))


@pytest.fixture(scope="module", autouse=True)
def _cheap_passwords() -> Iterator[None]:
    # By file: what stays for the session would hold for tests of other folders too.
    with pytest.MonkeyPatch.context() as patch:
        _hash_with(CHEAP, patch)
        yield


@pytest.fixture
def full_cost_passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    """Passwords are hashed as in production, for tests of just that."""
    _hash_with(FULL, monkeypatch)
