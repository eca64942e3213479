"""A Postgres of the benchmark's own, migrated, and what its processes have used."""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from backend.embedded import DataDir, EmbeddedPostgres, running
from gateway.migrate import upgrade


@contextmanager
def migrated(folder: Path) -> Iterator["Database"]:
    """It runs until the block ends, as `weir dev` runs one: synchronous_commit on."""
    data_dir = DataDir.open(folder)
    postgres = EmbeddedPostgres(data_dir)
    database = Database(postgres)
    try:
        database.start()
        asyncio.run(upgrade(database.url))
        yield database
    finally:
        database.stop()
        postgres.remove_socket_folder()
        data_dir.close()


class Database:
    """The server, which may be stopped and started."""

    def __init__(self, postgres: EmbeddedPostgres) -> None:
        self._postgres = postgres
        self._pid = 0
        self._serving = ExitStack()

    @property
    def url(self) -> str:
        """Of the database that is there from the beginning."""
        return self._postgres.database_url("postgres")

    def start(self) -> None:
        """It serves on return. From a thread that lives as long as it is to run."""
        self._pid = self._serving.enter_context(running(self._postgres)).pid

    def stop(self) -> None:
        """It is gone on return."""
        self._serving.close()

    def cpu_s(self) -> float:
        """User and system time of its processes that run now, so far."""
        return sum(_cpu_s(pid) for pid in [self._pid, *_children(self._pid)])


def _children(parent: int) -> list[int]:
    pids = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]
    return [pid for pid in pids if _stat(pid)[1:2] == [str(parent)]]


def _stat(pid: int) -> list[str]:
    """The fields after the name: state, parent and so on; none of a process that is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _cpu_s(pid: int) -> float:
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9
    except OSError:
        return 0.0
