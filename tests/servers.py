"""Real servers for tests: a Valkey, a Postgres, databases in it, and HTTP children."""

import asyncio
import json
import os
import pwd
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from uuid import uuid4

import asyncpg
import pytest
import redis

from backend.embedded import (
    DataDir,
    EmbeddedPostgres,
    EmbeddedValkey,
    free_port,
    running,
)

TEMPLATE = "migrated"
TESTS = Path(__file__).parent
PACKAGES = Path(asyncpg.__file__).parent.parent
"""Where this environment's packages are, for a Python that is not of this environment."""

__all__ = [
    "TEMPLATE",
    "LaunchRefused",
    "Launched",
    "Stores",
    "drop_database",
    "engine_with_models",
    "eventually",
    "flush",
    "free_port",
    "fresh_database",
    "launch_stores",
    "make_template",
    "nobody",
    "process_state",
    "python_for",
    "running_stores",
]


@dataclass(frozen=True)
class Stores:
    """The Valkey and the Postgres that a test session runs on."""

    valkey: EmbeddedValkey
    postgres: EmbeddedPostgres
    valkey_process: subprocess.Popen[bytes]
    postgres_process: subprocess.Popen[bytes]

    @property
    def redis_url(self) -> str:
        """Database 0 of the Valkey."""
        return self.valkey.url


@contextmanager
def running_stores(folder: Path) -> Iterator[Stores]:
    """Both embedded stores in `folder`, until the block ends."""
    data_dir = DataDir.open(folder)
    valkey, postgres = EmbeddedValkey(data_dir), EmbeddedPostgres(data_dir)
    try:
        with running(valkey) as valkey_process, running(postgres) as postgres_process:
            yield Stores(valkey, postgres, valkey_process, postgres_process)
    finally:
        postgres.remove_socket_folder()
        data_dir.close()


class LaunchRefused(Exception):
    """The launcher ended with one line instead of serving."""


@dataclass(frozen=True)
class Launched:
    """Both embedded stores, run by a launcher that can be killed."""

    launcher: subprocess.Popen[str]
    valkey_pid: int
    postgres_pid: int
    redis_url: str
    database_url: str
    start_ms: float

    def stop(self) -> int:
        """Let the launcher stop them; returns its status."""
        assert self.launcher.stdin is not None
        self.launcher.stdin.close()
        return self.launcher.wait(20)


def launch_stores(folder: Path, account: tuple[int, int] | None = None) -> Launched:
    """Start a launcher of both stores, with an empty PATH and HOME, and wait until they serve.

    Raises LaunchRefused with what the launcher wrote, where it ends instead. Skips the test where
    `account` cannot run Python.
    """
    user, group = account or (None, None)
    launcher = subprocess.Popen(
        [python_for(account), str(TESTS / "embedded_launcher.py"), str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={"HOME": "", "PATH": "", "PYTHONPATH": f"{TESTS.parent}:{PACKAGES}"},
        cwd="/",
        user=user,
        group=group,
        extra_groups=None if user is None else [],
    )
    assert launcher.stdout is not None
    line = launcher.stdout.readline()
    if not line.startswith("{"):
        launcher.wait()
        raise LaunchRefused(line.strip())
    return Launched(launcher, **json.loads(line))


def python_for(account: tuple[int, int] | None, module: str = "backend.embedded") -> str:
    """A Python with which `account` can import `module`; the present one may lie in a folder of
    root's own. Skips the test where there is none."""
    if account is None:
        return sys.executable
    for candidate in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        with suppress(OSError):
            answer = subprocess.run(
                [candidate, "-c", f"import {module}"],
                env={"PYTHONPATH": f"{TESTS.parent}:{PACKAGES}"},
                user=account[0],
                group=account[1],
                extra_groups=[],
                cwd="/",
                capture_output=True,
                check=False,
            )
            if answer.returncode == 0:
                return candidate
    pytest.skip(f"user {account[0]} has no Python that imports {module} from this checkout")


def flush(redis_url: str) -> None:
    """Empty every database of the server, its scripts and functions too."""
    with redis.Redis.from_url(redis_url) as client:
        client.flushall()
        client.script_flush()


@asynccontextmanager
async def _administering(postgres: EmbeddedPostgres) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(postgres.url)
    try:
        yield connection
    finally:
        await connection.close()


async def fresh_database(postgres: EmbeddedPostgres, *, template: str = "template0") -> str:
    """The URL of a new database made from `template`."""
    name = f"test_{uuid4().hex}"
    async with _administering(postgres) as connection:
        # A copy of files, not of log records: the quicker way for a small template.
        await connection.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY")
    return postgres.database_url(name)


async def drop_database(postgres: EmbeddedPostgres, database_url: str) -> None:
    """Remove a database, whoever is still connected to it."""
    name = database_url.partition("@/")[2].partition("?")[0]
    async with _administering(postgres) as connection:
        await connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


async def make_template(postgres: EmbeddedPostgres) -> None:
    """Make the database `TEMPLATE`, at this release's head; do nothing if it is there."""
    from gateway.migrate import upgrade  # noqa: PLC0415 - few sessions need a migrated database

    async with _administering(postgres) as connection:
        if await connection.fetchval("SELECT 1 FROM pg_database WHERE datname = $1", TEMPLATE):
            return
        await connection.execute("DROP DATABASE IF EXISTS migrating")
        await connection.execute("CREATE DATABASE migrating")
        await upgrade(postgres.database_url("migrating"))
        await connection.execute(f"ALTER DATABASE migrating RENAME TO {TEMPLATE}")


async def eventually(
    holds: Callable[[], object], *, within_s: float = 10.0, what: str = "the condition"
) -> None:
    """Return once `holds()` is true; fail where that takes longer than `within_s`."""
    deadline = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline, f"{what} did not hold within {within_s} s"
        await asyncio.sleep(0.005)


@contextmanager
def engine_with_models(
    port: int, models: Mapping[str, int | None], *, reports_loads: bool
) -> Iterator[None]:
    """An HTTP server that lists models with their context lengths, as an engine would; where it
    `reports_loads` it answers `/v1/loads` as SGLang does."""
    listed = [
        {"id": model} | ({} if length is None else {"max_model_len": length})
        for model, length in models.items()
    ]
    answers: dict[str, object] = {"/v1/models": {"object": "list", "data": listed}}
    if reports_loads:
        answers["/v1/loads"] = {"loads": [{"dp_rank": 0}]}

    class Answering(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(answers.get(self.path)).encode()
            self.send_response(200 if self.path in answers else 404)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", port), Answering) as server:
        serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        serving.start()
        try:
            yield
        finally:
            server.shutdown()
            serving.join()


def process_state(pid: int) -> str | None:
    """The kernel's letter for a process's state (Z is a zombie); None where it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return None


def process_tree(pid: int) -> list[int]:
    """The process and all that descend from it, parents first."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                stat = (entry / "stat").read_text().rpartition(")")[2].split()
                children.setdefault(int(stat[1]), []).append(int(entry.name))
    found = [pid]
    for each in found:
        found.extend(children.get(each, ()))
    return found


def nobody() -> tuple[int, int]:
    """User and group id of an unprivileged user to become; the present one where not root."""
    if os.geteuid() != 0:
        return os.geteuid(), os.getegid()
    entry = pwd.getpwnam("nobody")
    return entry.pw_uid, entry.pw_gid
