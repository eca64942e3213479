"""A Valkey on a TCP port of 127.0.0.1, with a password, its data in an append-only file.

Port and password are chosen once and kept beside the data, in files that only the owner may read;
neither shows in the list of processes.
"""

import secrets
import signal
import socket
from pathlib import Path

from backend.embedded.binaries import valkey_server
from backend.embedded.child import Launch
from backend.embedded.data_dir import DataDir, write_private
from backend.embedded.ports import free_port, port_is_free

PROBE_TIMEOUT_S = 1.0
CONFIGURATION = """\
bind 127.0.0.1
port {port}
protected-mode yes
requirepass {password}
dir ./
appendonly yes
appendfsync everysec
save ""
maxmemory-policy noeviction
set-proc-title no
daemonize no
pidfile ""
logfile ""
"""


class EmbeddedValkey:
    """One Valkey in `<data-dir>/valkey`. `url` is fixed from here on."""

    name = "valkey"
    stop_signal = signal.SIGTERM

    def __init__(self, data_dir: DataDir) -> None:
        """Take the kept address, or choose one. Raises BinaryMissing, NoFreePort."""
        self._program = valkey_server()
        self._data_dir = data_dir
        self._folder = data_dir.folder("valkey")
        self._password = _kept(self._folder / "password", "") or secrets.token_urlsafe(32)
        kept_port = _kept(self._folder / "port", "")
        if kept_port.isdigit() and port_is_free(int(kept_port)):
            self.port = int(kept_port)
        else:
            self.port = free_port()
        write_private(self._folder / "password", self._password.encode())
        write_private(self._folder / "port", str(self.port).encode())

    @property
    def url(self) -> str:
        """Its address, which holds the password."""
        return f"redis://:{self._password}@127.0.0.1:{self.port}/0"

    def launch(self) -> Launch:
        """Write its configuration; a torn end of its file it repairs itself."""
        text = CONFIGURATION.format(port=self.port, password=self._password)
        write_private(self._folder / "valkey.conf", text.encode())
        return Launch(
            (str(self._program), "valkey.conf"),
            self._data_dir.log_path(self.name),
            environment={"LC_ALL": "C"},
            folder=self._folder,
            keep_fds=(self._data_dir.servers_fd,),
            signal_on_orphaned=signal.SIGTERM,
        )

    def is_ready(self) -> bool:
        """Whether this server, and no other at its port, has loaded its data."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), PROBE_TIMEOUT_S) as connection:
                connection.settimeout(PROBE_TIMEOUT_S)
                connection.sendall(f"AUTH {self._password}\r\nPING\r\n".encode())
                return _lines(connection, 2) == [b"+OK", b"+PONG"]
        except OSError:
            return False


def _lines(connection: socket.socket, count: int) -> list[bytes]:
    answer = b""
    while answer.count(b"\r\n") < count:
        received = connection.recv(4096)
        if not received:
            break
        answer += received
    return answer.split(b"\r\n")[:count]


def _kept(path: Path, default: str) -> str:
    return path.read_text().strip() if path.exists() else default
