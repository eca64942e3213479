"""Whose journal a directory is: one gateway at a time, one id for ever, a new boot at each open."""

import fcntl
import os
import time
from pathlib import Path
from typing import Self
from uuid import uuid4

import msgspec

from gateway.adapters.journal.storage import Storage
from gateway.errors import WeirError

LOCK_NAME = "lock"
IDENTITY_NAME = "identity.json"
LOOKED_AT_S = 0.05
"""Longer than `is_in_use` holds the lock that it tries."""


class JournalUnusable(WeirError):
    """The directory cannot hold a journal now; the message says why in one line."""

    code = "journal_unusable"


class DirectoryLock:
    """Exclusive use of a journal directory, given up when the process ends, however it ends."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @classmethod
    def take(cls, directory: Path) -> Self:
        """Lock `directory`, creating it where missing. Raises JournalUnusable."""
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(
                directory / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
            )
        except OSError as error:
            raise JournalUnusable(f"journal directory: {error.strerror}") from error
        if not (_locked(descriptor) or _locked(descriptor, after_s=LOOKED_AT_S)):
            os.close(descriptor)
            raise JournalUnusable("journal directory is in use by another gateway")
        return cls(descriptor)

    def release(self) -> None:
        """Let another gateway have it; harmless twice."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def is_in_use(directory: Path) -> bool:
    """Whether a process has the lock now. Raises OSError."""
    try:
        descriptor = os.open(directory / LOCK_NAME, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        return not _locked(descriptor)
    finally:
        os.close(descriptor)


def _locked(descriptor: int, *, after_s: float = 0.0) -> bool:
    time.sleep(after_s)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


class Identity(msgspec.Struct, frozen=True):
    """A gateway's id, and the number of its latest boot."""

    gateway_id: str
    boot: int


def read_identity(directory: Path) -> Identity | None:
    """What the directory says; None where it is new or the file is damaged."""
    try:
        return msgspec.json.decode((directory / IDENTITY_NAME).read_bytes(), type=Identity)
    except (FileNotFoundError, msgspec.DecodeError):
        return None


def begin_boot(
    directory: Path, storage: Storage, *, found: Identity | None, now_ms: int
) -> Identity:
    """The identity of a new boot, durable on return.

    Boots are numbered by the clock, at least one above the last: a directory restored from an
    older snapshot never uses again a number whose records Postgres already holds, so nothing new
    is taken for shipped. Raises OSError.
    """
    last = found or Identity(gateway_id=f"gw-{uuid4().hex}", boot=0)
    current = Identity(gateway_id=last.gateway_id, boot=max(last.boot + 1, now_ms))
    storage.replace(directory / IDENTITY_NAME, msgspec.json.encode(current))
    return current
