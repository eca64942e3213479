"""Child processes that cannot outlive their launcher: how they are started, watched and stopped.

The kernel ties a child to the *thread* that started it, so children are started from the main
thread. Where the kernel lacks that (macOS) a launcher that is killed leaves its children to the
next one, which waits for them or is refused.
"""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

PR_SET_PDEATHSIG = 1
POLL_S = 0.005
LOG_TAIL_BYTES = 4096
LOG_BYTES_MAX = 16 * 1024 * 1024


@dataclass(frozen=True)
class Launch:
    """One program to start."""

    arguments: tuple[str, ...]
    log_path: Path
    """Its output is appended here."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """The whole of it: nothing is inherited."""
    folder: Path | None = None
    """Where it runs; the launcher enters it, so the child's user need not be able to reach it."""
    account: tuple[int, int] | None = None
    """User and group id to run as; None is the launcher's own."""
    keep_fds: tuple[int, ...] = ()
    signal_on_orphaned: signal.Signals = signal.SIGKILL


class Store(Protocol):
    """A server that can be started, at the same address each time."""

    name: str
    stop_signal: signal.Signals

    def launch(self) -> Launch:
        """What to start, after making good what a crash left. Blocks for up to a second or so."""
        ...

    def is_ready(self) -> bool:
        """Whether it serves. Blocks for at most about a second."""
        ...


class StartFailed(RuntimeError):
    """A server did not come up; the message is one line and names its log."""


def spawn(launch: Launch) -> subprocess.Popen[bytes]:
    """Start a program in a session of its own. Raises StartFailed where it cannot be executed."""
    user, group = launch.account or (None, None)
    log_fd = _open_log(launch.log_path)
    try:
        return subprocess.Popen(
            launch.arguments,
            stdin=subprocess.DEVNULL,
            stdout=log_fd,
            stderr=log_fd,
            env=dict(launch.environment),
            cwd=launch.folder,
            user=user,
            group=group,
            extra_groups=None if user is None else [],
            umask=0o077,
            pass_fds=launch.keep_fds,
            start_new_session=True,
            # Runs after the change of user, which would clear it again.
            preexec_fn=_death_signal(launch.signal_on_orphaned),  # noqa: PLW1509 - see above
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise StartFailed(f"cannot start {launch.arguments[0]}: {error}") from error
    finally:
        os.close(log_fd)


def await_ready(store: Store, child: subprocess.Popen[bytes], *, timeout_s: float) -> None:
    """Return once `store` serves. Raises StartFailed where it ends or takes longer."""
    deadline = time.monotonic() + timeout_s
    while not store.is_ready():
        if child.poll() is not None:
            raise StartFailed(f"{store.name} ended with status {child.returncode}")
        if time.monotonic() > deadline:
            raise StartFailed(f"{store.name} was not ready within {timeout_s:.0f} s")
        time.sleep(POLL_S)


def stop(
    child: subprocess.Popen[bytes], stop_signal: signal.Signals, *, timeout_s: float = 10.0
) -> None:
    """Ask a child to end, kill it if it does not, and reap it."""
    if child.poll() is None:
        child.send_signal(stop_signal)
        try:
            child.wait(timeout_s)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


@contextmanager
def running(store: Store, *, timeout_s: float = 60.0) -> Iterator[subprocess.Popen[bytes]]:
    """Start `store`, yield its process once it serves, and stop it in the end.

    Raises StartFailed, with the last line that the server wrote.
    """
    launch = store.launch()
    child = spawn(launch)
    try:
        try:
            await_ready(store, child, timeout_s=timeout_s)
        except StartFailed as error:
            raise StartFailed(f"{error}; {last_words(launch.log_path)}") from error
        yield child
    finally:
        stop(child, store.stop_signal)


def last_words(log_path: Path) -> str:
    """The last line of a log, and where it is, for a message of one line."""
    try:
        with log_path.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - LOG_TAIL_BYTES))
            lines = [line.strip() for line in file.read().decode(errors="replace").splitlines()]
    except OSError:
        lines = []
    said = next((line for line in reversed(lines) if line), "it wrote nothing")
    return f"{said[:300]} (log: {log_path})"


def _open_log(path: Path) -> int:
    if path.exists() and path.stat().st_size > LOG_BYTES_MAX:
        path.replace(path.with_name(path.name + ".1"))
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)


def _death_signal(signal_on_orphaned: signal.Signals) -> Callable[[], None]:
    launcher_pid = os.getpid()
    prctl = getattr(ctypes.CDLL(None), "prctl", None) if sys.platform == "linux" else None

    def in_child() -> None:
        if prctl is not None:
            prctl(PR_SET_PDEATHSIG, int(signal_on_orphaned), 0, 0, 0)
        if os.getppid() != launcher_pid:  # it died before the kernel was told
            os._exit(1)

    return in_child
