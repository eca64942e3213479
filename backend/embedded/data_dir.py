"""The data directory: one launcher at a time, and none of an earlier one's servers.

Two locks. The launcher alone holds `launcher.lock`, so a second launcher is refused at once. The
servers inherit `servers.lock`, so a launcher that follows a killed one waits until the last of
that one's servers has gone: two of them on the same files would destroy them.
"""

import fcntl
import os
import time
from pathlib import Path

LEFTOVERS_WAIT_S = 15.0
POLL_S = 0.01


class DataDirInUse(RuntimeError):
    """Another launcher, or what it left running, uses the directory."""


class DataDirUnusable(RuntimeError):
    """The directory cannot be made, written or locked."""


class DataDir:
    """A directory that this process alone may use, from `open` until `close` or its death."""

    def __init__(self, path: Path, launcher_fd: int, servers_fd: int) -> None:
        self.path = path
        self._launcher_fd = launcher_fd
        self.servers_fd = servers_fd
        """To be inherited by every server that works on the directory."""

    @classmethod
    def open(cls, path: Path, *, leftovers_wait_s: float = LEFTOVERS_WAIT_S) -> "DataDir":
        """Make the directory if need be, and lock it.

        Raises DataDirInUse where another launcher has it, or where servers of a killed one are
        still there after `leftovers_wait_s`; DataDirUnusable where it cannot be written.
        """
        path = Path(os.path.abspath(path))
        try:
            path.mkdir(parents=True, exist_ok=True, mode=0o700)
            launcher_fd = _open_lock(path / "launcher.lock")
        except OSError as error:
            raise DataDirUnusable(f"cannot use {path}: {error.strerror}") from error
        try:
            if not _locked(launcher_fd, path):
                raise DataDirInUse(f"{path} is in use by {_holder(launcher_fd)}")
            os.ftruncate(launcher_fd, 0)
            os.pwrite(launcher_fd, f"{os.getpid()}\n".encode(), 0)
            servers_fd = _locked_servers(path, leftovers_wait_s)
        except BaseException:
            os.close(launcher_fd)
            raise
        return cls(path, launcher_fd, servers_fd)

    def folder(self, name: str) -> Path:
        """A private folder of that name in the directory, made if need be."""
        folder = self.path / name
        try:
            folder.mkdir(exist_ok=True, parents=True, mode=0o700)
        except OSError as error:
            raise DataDirUnusable(f"cannot make {folder}: {error.strerror}") from error
        return folder

    def log_path(self, name: str) -> Path:
        """Where the output of the server of that name goes."""
        return self.folder("log") / f"{name}.log"

    def close(self) -> None:
        """Give the directory back. Every server must have ended."""
        os.close(self.servers_fd)
        os.close(self._launcher_fd)


def write_private(path: Path, content: bytes) -> None:
    """Replace a file's content atomically; only its owner may read it."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.new")
    draft.unlink(missing_ok=True)
    fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(fd)
    draft.replace(path)


def _open_lock(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _locked(fd: int, path: Path) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise DataDirUnusable(f"cannot lock {path}: {error.strerror}") from error
    return True


def _locked_servers(path: Path, wait_s: float) -> int:
    try:
        fd = _open_lock(path / "servers.lock")
    except OSError as error:
        raise DataDirUnusable(f"cannot use {path}: {error.strerror}") from error
    deadline = time.monotonic() + wait_s
    try:
        while not _locked(fd, path):
            if time.monotonic() > deadline:
                raise DataDirInUse(
                    f"{path} is in use by servers that an earlier run left and that do not end"
                )
            time.sleep(POLL_S)
    except BaseException:
        os.close(fd)
        raise
    return fd


def _holder(launcher_fd: int) -> str:
    pid = os.pread(launcher_fd, 32, 0).strip()
    return f"another weir, process {pid.decode()}" if pid.isdigit() else "another weir"
