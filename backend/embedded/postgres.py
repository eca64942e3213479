"""A Postgres that listens on a Unix socket only and trusts whoever may reach it: its owner.

The socket lies in a short folder of its own in /tmp, since a socket's path is limited to about a
hundred bytes and the data directory's is not.

As root the server runs as another user, who need not be able to walk to the data: it is started
*in* its folder and told that its data are at `/proc/self/cwd`.
"""

import hashlib
import os
import shutil
import signal
import socket
import stat
import struct
import sys
from pathlib import Path
from urllib.parse import quote

from backend.embedded.account import postgres_account
from backend.embedded.binaries import postgres_programs, programs_for
from backend.embedded.child import Launch, StartFailed, last_words, spawn
from backend.embedded.data_dir import DataDir, DataDirUnusable

SOCKET_ROOT = Path("/tmp")  # noqa: S108 - short; each folder's owner and mode are checked
SOCKET_FOLDERS_TRIED = 10
PROBE_TIMEOUT_S = 1.0
PROTOCOL_3 = 196_608
INITDB_OPTIONS = (
    "--username=postgres",
    "--auth=trust",
    "--encoding=UTF8",
    "--locale-provider=builtin",
    "--locale=C",
    "--builtin-locale=C.UTF-8",
)
ENVIRONMENT = {"LC_ALL": "C", "TZ": "UTC"}


class EmbeddedPostgres:
    """One Postgres in `<data-dir>/postgres`. `url` is fixed from here on."""

    name = "postgres"
    stop_signal = signal.SIGINT  # Postgres's own word for "end the sessions and stop"

    def __init__(self, data_dir: DataDir) -> None:
        """Find the programs, the user and the socket's folder; nothing is started.

        Raises BinaryMissing, DataDirUnusable.
        """
        self._data_dir = data_dir
        self._folder = data_dir.path / "postgres"
        self._account = postgres_account(self._folder)
        programs = postgres_programs()
        self.programs = programs_for(self._account, programs) if self._account else programs
        """The folder that also has `psql` and `pg_dump`."""
        self.socket_folder = _socket_folder(data_dir.path, self._account)

    @property
    def url(self) -> str:
        """Its address, for psql, asyncpg and SQLAlchemy alike."""
        return self.database_url("postgres")

    def database_url(self, database: str) -> str:
        """The address of one of its databases."""
        return f"postgresql://postgres@/{quote(database)}?host={quote(str(self.socket_folder))}"

    def launch(self) -> Launch:
        """Make the cluster if there is none yet. Raises StartFailed."""
        if not self._folder.exists():
            self._initialize()
        _private_folder(self.socket_folder, self._account)
        _remove_stale(self._folder, self.socket_folder)
        settings = {
            "listen_addresses": "",
            "unix_socket_directories": str(self.socket_folder),
            "unix_socket_permissions": "0700",
            "timezone": "UTC",
            "log_timezone": "UTC",
        }
        options = tuple(part for k, v in settings.items() for part in ("-c", f"{k}={v}"))
        return self._in_folder(self._folder, "postgres", *options)

    def is_ready(self) -> bool:
        """Whether it accepts sessions."""
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
                connection.settimeout(PROBE_TIMEOUT_S)
                connection.connect(str(self.socket_folder / ".s.PGSQL.5432"))
                names = b"user\0postgres\0database\0postgres\0\0"
                connection.sendall(struct.pack("!II", 8 + len(names), PROTOCOL_3) + names)
                answer = connection.recv(1)
                connection.sendall(b"X\0\0\0\4")
        except OSError:
            return False
        return answer == b"R"

    def remove_socket_folder(self) -> None:
        """Leave nothing in /tmp, once the server has stopped."""
        shutil.rmtree(self.socket_folder, ignore_errors=True)

    def _in_folder(self, folder: Path, program: str, *options: str) -> Launch:
        walkable = self._account is None or sys.platform != "linux"
        return Launch(
            (
                str(self.programs / program),
                "-D",
                str(folder) if walkable else "/proc/self/cwd",
                *options,
            ),
            self._data_dir.log_path(self.name),
            environment=ENVIRONMENT,
            folder=folder,
            account=self._account,
            keep_fds=(self._data_dir.servers_fd,),
            signal_on_orphaned=self.stop_signal,
        )

    def _initialize(self) -> None:
        """Make a cluster beside its place and move it there whole, so that none is half made."""
        draft = self._data_dir.path / "postgres.new"
        if draft.exists():
            shutil.rmtree(draft)
        draft.mkdir(mode=0o700)
        if self._account is not None:
            os.chown(draft, *self._account)
        launch = self._in_folder(draft, "initdb", *INITDB_OPTIONS)
        if spawn(launch).wait() != 0:
            raise StartFailed(f"initdb failed: {last_words(launch.log_path)}")
        draft.rename(self._folder)


def _socket_folder(data_path: Path, account: tuple[int, int] | None) -> Path:
    """A private folder in /tmp, the same one for the same data directory and user."""
    uid = os.geteuid() if account is None else account[0]
    key = hashlib.sha256(os.fsencode(data_path)).hexdigest()[:12]
    for attempt in range(SOCKET_FOLDERS_TRIED):
        folder = SOCKET_ROOT / f"weir-{uid}-{key}-{attempt}"
        if _private_folder(folder, account):
            return folder
    raise DataDirUnusable(f"every {SOCKET_ROOT}/weir-{uid}-{key}-* belongs to somebody else")


def _private_folder(folder: Path, account: tuple[int, int] | None) -> bool:
    """Make the folder if need be; whether it is the account's own and nobody else's."""
    uid, gid = account or (os.geteuid(), os.getegid())
    try:
        folder.mkdir(mode=0o700)
        if account is not None:
            os.chown(folder, uid, gid)
    except FileExistsError:
        pass
    except OSError as error:
        raise DataDirUnusable(f"cannot make {folder}: {error.strerror}") from error
    status = folder.lstat()
    return status.st_uid == uid and stat.S_ISDIR(status.st_mode) and status.st_mode & 0o077 == 0


def _remove_stale(data_folder: Path, socket_folder: Path) -> None:
    """Remove the lock files of a postmaster that is dead, though its process id is in use.

    Postgres takes the id's new bearer, or the zombie under a PID 1 that reaps nobody, for a live
    postmaster, and refuses. Nothing that served this data is alive: it would hold the data
    directory's lock.
    """
    lock_files = (data_folder / "postmaster.pid", socket_folder / ".s.PGSQL.5432.lock")
    for path in lock_files:
        if path.exists() and not _is_postmaster(path.read_text().partition("\n")[0]):
            path.unlink()


def _is_postmaster(pid: str) -> bool:
    if sys.platform != "linux":
        return True
    try:
        status = Path("/proc", pid.strip(), "stat").read_text()
    except OSError:
        return False
    name, _, rest = status.rpartition(")")
    return name.endswith("(postgres") and rest.split()[0] != "Z"
