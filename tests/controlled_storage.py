"""A disk on which calls fail when told to: by a test in the same process, or by a file for another
process. No mount and no root."""

import errno
import os
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from gateway.adapters.journal.storage import Storage

CALLS = (
    "create", "write", "sync", "reserve", "truncate", "rename", "remove", "sync_directory",
)  # fmt: skip
"""What may fail."""


class Fault(NamedTuple):
    """A call fails with `code`, once so many more have worked."""

    code: int
    after: int = 0


class ControlledStorage(Storage):
    """The real disk, except for the calls in `faults`. Nothing else is faked.

    With a control file each line of it is a fault: `ENOSPC reserve` or `EIO sync 3`; it is read
    again at each call, and an empty one lets all work.
    """

    def __init__(self, control: Path | None = None) -> None:
        self.faults: dict[str, Fault] = {}
        self.failed: Counter[str] = Counter()
        """How many calls have failed."""
        self._control = control
        self._text = ""

    def create(self, path: Path) -> int:
        self._may_fail("create")
        return super().create(path)

    def write(self, descriptor: int, data: bytes, offset: int) -> None:
        self._may_fail("write")
        super().write(descriptor, data, offset)

    def sync(self, descriptor: int) -> None:
        self._may_fail("sync")
        super().sync(descriptor)

    def reserve(self, descriptor: int, offset: int, length: int) -> None:
        self._may_fail("reserve")
        super().reserve(descriptor, offset, length)

    def truncate(self, descriptor: int, length: int) -> None:
        self._may_fail("truncate")
        super().truncate(descriptor, length)

    def rename(self, draft: Path, path: Path) -> None:
        self._may_fail("rename")
        super().rename(draft, path)

    def remove(self, path: Path) -> None:
        self._may_fail("remove")
        super().remove(path)

    def sync_directory(self, directory: Path) -> None:
        self._may_fail("sync_directory")
        super().sync_directory(directory)

    def _may_fail(self, call: str) -> None:
        self._read_control()
        fault = self.faults.get(call)
        if fault is None:
            return
        if fault.after:
            self.faults[call] = fault._replace(after=fault.after - 1)
            return
        self.failed[call] += 1
        raise OSError(fault.code, os.strerror(fault.code))

    def _read_control(self) -> None:
        if self._control is None:
            return
        text = self._control.read_text() if self._control.exists() else ""
        if text != self._text:
            self._text, self.faults = text, faults_of(text)


def faults_of(text: str) -> dict[str, Fault]:
    """The faults that a control file names."""
    faults = {}
    for line in text.splitlines():
        name, call, *after = line.split()
        assert call in CALLS, line
        faults[call] = Fault(getattr(errno, name), int(after[0]) if after else 0)
    return faults
