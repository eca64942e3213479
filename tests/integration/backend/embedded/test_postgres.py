"""The embedded Postgres: every client can use its URL, and what a crash leaves is made good."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest
import servers
from sqlalchemy import text

from backend.embedded import DataDir, DataDirUnusable, EmbeddedPostgres, running
from backend.embedded import postgres as module
from gateway.adapters.postgres import async_engine


@pytest.fixture
def data_dir(tmp_path: Path) -> Iterator[DataDir]:
    """An open data directory."""
    opened = DataDir.open(tmp_path / "data")
    yield opened
    opened.close()


@pytest.fixture
def postgres(data_dir: DataDir) -> Iterator[EmbeddedPostgres]:
    """One that was not started yet."""
    made = EmbeddedPostgres(data_dir)
    yield made
    made.remove_socket_folder()


async def test_psql_asyncpg_and_sqlalchemy_all_take_its_url(stores: servers.Stores) -> None:
    """One URL for people and programs."""
    url = stores.postgres.url
    psql = subprocess.run(  # noqa: ASYNC221 - nothing else runs on this loop
        [stores.postgres.programs / "psql", url, "-Atc", "SELECT 1"],
        capture_output=True,
        check=True,
        env={},
    )
    assert psql.stdout == b"1\n"
    connection = await asyncpg.connect(url)
    assert await connection.fetchval("SHOW server_version_num") >= "180000"
    await connection.close()
    engine = async_engine(url)
    async with engine.connect() as db:
        assert (await db.execute(text("SHOW timezone"))).scalar() == "UTC"
    await engine.dispose()


async def test_it_listens_on_nothing_but_its_socket(stores: servers.Stores) -> None:
    """It trusts whoever reaches it, so only its owner may: no TCP, a private folder."""
    connection = await asyncpg.connect(stores.postgres.url)
    assert await connection.fetchval("SHOW listen_addresses") == ""
    assert await connection.fetchval("SHOW fsync") == "on"
    await connection.close()
    status = os.stat(stores.postgres.socket_folder)
    assert status.st_mode & 0o077 == 0


@pytest.mark.fault
async def test_after_kill_9_it_recovers_at_its_address(postgres: EmbeddedPostgres) -> None:
    """The postmaster dies and leaves its children and lock files; a start makes that good."""
    with running(postgres) as process:
        connection = await asyncpg.connect(postgres.url)
        await connection.execute("CREATE TABLE kept AS SELECT 7 AS value")
        process.send_signal(signal.SIGKILL)
        process.wait(10)
        connection.terminate()
    with running(postgres):
        connection = await asyncpg.connect(postgres.url)
        assert await connection.fetchval("SELECT value FROM kept") == 7
        await connection.close()


def test_an_interrupted_first_start_is_begun_anew(
    data_dir: DataDir, postgres: EmbeddedPostgres
) -> None:
    """A half-made cluster is never taken for a whole one."""
    (data_dir.path / "postgres.new").mkdir()
    (data_dir.path / "postgres.new" / "PG_VERSION").write_text("18\n")
    with running(postgres):
        assert postgres.is_ready()
    assert not (data_dir.path / "postgres.new").exists()


@pytest.mark.parametrize("pid", [os.getpid(), 1, 2**22 - 1], ids=["own", "first", "none"])
def test_the_lock_file_of_a_dead_postmaster_does_not_stop_it(
    data_dir: DataDir, postgres: EmbeddedPostgres, pid: int
) -> None:
    """Also where another process has that process id by now."""
    with running(postgres):
        pass
    for path in (
        data_dir.path / "postgres" / "postmaster.pid",
        postgres.socket_folder / ".s.PGSQL.5432.lock",
    ):
        path.write_text(f"{pid}\n/nowhere\n0\n5432\n\n\n0 0\n")
    with running(postgres):
        assert postgres.is_ready()


def test_the_lock_file_of_a_live_postmaster_is_left(
    stores: servers.Stores, data_dir: DataDir, postgres: EmbeddedPostgres
) -> None:
    """Somebody may have started one by hand: two on the same files would destroy them."""
    with running(postgres):
        pass
    lock_file = data_dir.path / "postgres" / "postmaster.pid"
    lock_file.write_text(f"{stores.postgres_process.pid}\n")
    postgres.launch()
    assert lock_file.exists()


def test_a_socket_folder_of_somebody_elses_is_not_used(
    data_dir: DataDir, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Whoever makes our folder in /tmp before us does not get to see our sessions."""
    monkeypatch.setattr(module, "SOCKET_ROOT", tmp_path)
    first = EmbeddedPostgres(data_dir).socket_folder
    first.rmdir()
    first.mkdir()
    first.chmod(0o755)  # as a stranger's would be to us
    second = EmbeddedPostgres(data_dir).socket_folder
    assert second != first
    second.rmdir()
    second.symlink_to(tmp_path)
    assert EmbeddedPostgres(data_dir).socket_folder not in (first, second)


def test_with_every_socket_folder_taken_it_says_so(
    data_dir: DataDir, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """One line instead of a socket that others can reach."""
    monkeypatch.setattr(module, "SOCKET_ROOT", tmp_path)
    monkeypatch.setattr(module, "SOCKET_FOLDERS_TRIED", 1)
    EmbeddedPostgres(data_dir).socket_folder.chmod(0o777)
    with pytest.raises(DataDirUnusable, match="belongs to somebody else"):
        EmbeddedPostgres(data_dir)
