"""The few system calls by which the journal touches the disk, in one place, so that a test can let
one fail as a real disk does."""

import contextlib
import errno
import fcntl
import os
from pathlib import Path

_ZEROS = bytes(1024 * 1024)


class Storage:
    """Writes that are whole or raise OSError."""

    def create(self, path: Path) -> int:
        """A new empty file, readable by its owner only. Raises FileExistsError."""
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)

    def write(self, descriptor: int, data: bytes, offset: int) -> None:
        """All of `data` at `offset`."""
        view = memoryview(data)
        while view:
            written = os.pwrite(descriptor, view, offset)
            offset += written
            view = view[written:]

    def sync(self, descriptor: int) -> None:
        """The file's data is on the disk, not in a cache, on return."""
        if hasattr(fcntl, "F_FULLFSYNC"):  # macOS: fsync alone stops at the drive's cache
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
        else:
            os.fdatasync(descriptor)

    def reserve(self, descriptor: int, offset: int, length: int) -> None:
        """Take disk space for bytes `[offset, offset + length)` now; they read as zeros."""
        if hasattr(os, "posix_fallocate"):
            try:
                os.posix_fallocate(descriptor, offset, length)
            except OSError as error:
                if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS):
                    raise
            else:
                return
        while length > 0:
            step = min(length, len(_ZEROS))
            self.write(descriptor, _ZEROS[:step], offset)
            offset, length = offset + step, length - step

    def truncate(self, descriptor: int, length: int) -> None:
        """Give back what lies after `length`."""
        os.ftruncate(descriptor, length)

    def is_at(self, path: Path, descriptor: int) -> bool:
        """Whether the open file is the one that `path` names. Raises OSError where that cannot be
        seen."""
        try:
            return os.path.samestat(path.stat(), os.fstat(descriptor))
        except FileNotFoundError:
            return False

    def rename(self, draft: Path, path: Path) -> None:
        """The file has that name instead, and whatever had it is gone."""
        draft.rename(path)

    def remove(self, path: Path) -> None:
        """The name is gone."""
        path.unlink()

    def sync_directory(self, directory: Path) -> None:
        """Names created, renamed and removed in `directory` are on the disk on return."""
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def replace(self, path: Path, data: bytes) -> None:
        """`path` holds `data` durably, or what it held before."""
        draft = path.with_name(path.name + ".draft")
        with contextlib.suppress(FileNotFoundError):
            draft.unlink()
        descriptor = self.create(draft)
        try:
            self.write(descriptor, data, 0)
            self.sync(descriptor)
        finally:
            os.close(descriptor)
        self.rename(draft, path)
        self.sync_directory(path.parent)
