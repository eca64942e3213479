"""Passwords: hashed and verified with Argon2id, two at once in a process.

Argon2 takes a core and 64 MiB for some tens of milliseconds, and releases the GIL meanwhile. Who
finds many waiting already is refused, so that a flood of log-ins holds up nothing else.
"""

import asyncio
import base64
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from gateway.administration.checks import PASSWORD_CHARACTERS_MAX
from gateway.errors import Overloaded

Result = TypeVar("Result")
AT_ONCE = 2
WAITING_MAX = 64
"""Some two seconds of work."""


@dataclass(frozen=True)
class Verdict:
    """Whether a password is right, and its new hash where the stored one has parameters that are
    no longer ours."""

    right: bool
    new_hash: str | None = None


class Hashing:
    """Work on passwords, away from the event loop: `at_once` at a time, `waiting_max` behind."""

    def __init__(self, *, at_once: int = AT_ONCE, waiting_max: int = WAITING_MAX) -> None:
        self._pool = ThreadPoolExecutor(at_once, thread_name_prefix="argon2")
        self._lock = threading.Lock()
        self._under_way = 0
        self._under_way_max = at_once + waiting_max

    async def run(self, work: Callable[[], Result]) -> Result:
        """What `work` returns. Raises Overloaded where too much waits already."""
        with self._lock:
            if self._under_way >= self._under_way_max:
                raise Overloaded("too many passwords are checked at once: try again", code="busy")
            self._under_way += 1
        future = self._pool.submit(work)
        future.add_done_callback(self._ended)
        return await asyncio.wrap_future(future)

    def _ended(self, _future: Future[Any]) -> None:
        with self._lock:
            self._under_way -= 1


_hasher = PasswordHasher()
_hashing = Hashing()


def _nobodys(hasher: PasswordHasher) -> str:
    """A hash that no password is known to have, which takes as long to check as a real one."""

    def zeros(length: int) -> str:
        return base64.b64encode(bytes(length)).rstrip(b"=").decode()

    parameters = f"m={hasher.memory_cost},t={hasher.time_cost},p={hasher.parallelism}"
    return f"$argon2id$v=19${parameters}${zeros(hasher.salt_len)}${zeros(hasher.hash_len)}"


NOBODYS_HASH = _nobodys(_hasher)


async def hash_password(password: str) -> str:
    """The hash to store. Raises Overloaded."""
    return await _hashing.run(lambda: _hasher.hash(_bytes_of(password)))


async def check_against(password_hash: str | None, password: str) -> Verdict:
    """Whether the password has that hash; with None, an account that there is not, the same work
    is done for nothing. Raises Overloaded."""
    return await _hashing.run(lambda: _verdict(password_hash or NOBODYS_HASH, password))


def _verdict(password_hash: str, password: str) -> Verdict:
    tried = _bytes_of(password[:PASSWORD_CHARACTERS_MAX])
    try:
        _hasher.verify(password_hash, tried)
    except (VerificationError, InvalidHashError):
        return Verdict(right=False)
    if password_hash == NOBODYS_HASH or len(password) > PASSWORD_CHARACTERS_MAX:
        return Verdict(right=False)
    if not _hasher.check_needs_rehash(password_hash):
        return Verdict(right=True)
    return Verdict(right=True, new_hash=_hasher.hash(tried))


def _bytes_of(password: str) -> bytes:
    return password.encode(errors="surrogatepass")
