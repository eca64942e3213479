"""Both stores through starts, stops and kills, as root and as another user."""

import os
import shutil
import signal
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest
import redis
import servers
from servers import Launched, LaunchRefused, eventually, launch_stores, process_state

Account = tuple[int, int] | None
ACCOUNTS: list[Account] = [None, servers.nobody()] if os.geteuid() == 0 else [None]


@pytest.fixture(params=ACCOUNTS, ids=lambda account: "self" if account is None else "nobody")
def account(request: pytest.FixtureRequest) -> Account:
    """Whom the launcher runs as; None is the present user."""
    chosen: Account = request.param
    return chosen


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that everyone can reach; root's temporary folders only root can."""
    made = Path(tempfile.mkdtemp(prefix="weir-test-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


@pytest.fixture
def folder(open_folder: Path, account: Account) -> Path:
    """A folder of that account's own."""
    if account is not None:
        os.chown(open_folder, *account)
    return open_folder


async def write(stores: Launched, value: str) -> None:
    """Put a value into both, durably."""
    with redis.Redis.from_url(stores.redis_url) as client:
        client.set("kept", value)
        connection = await asyncpg.connect(stores.database_url)
    await connection.execute("CREATE TABLE IF NOT EXISTS kept (value text)")
    await connection.execute("INSERT INTO kept VALUES ($1)", value)
    await connection.close()


async def read(stores: Launched) -> tuple[str, list[str]]:
    """What both hold."""
    with redis.Redis.from_url(stores.redis_url, decode_responses=True) as client:
        value = client.get("kept")
    connection = await asyncpg.connect(stores.database_url)
    rows = await connection.fetch("SELECT value FROM kept ORDER BY value")
    await connection.close()
    return str(value), [row["value"] for row in rows]


def address(stores: Launched) -> tuple[str, str]:
    """Where both are found."""
    return stores.redis_url, stores.database_url


async def test_a_second_start_finds_data_and_address_of_the_first(
    folder: Path, account: Account
) -> None:
    """After a clean stop everything is where it was; starts take about a second and less."""
    first = launch_stores(folder / "data", account)
    await write(first, "a")
    assert first.stop() == 0
    second = launch_stores(folder / "data", account)
    print(  # noqa: T201 - a measurement, shown by -s
        f"first start {first.start_ms:.0f} ms, second {second.start_ms:.0f} ms"
    )
    assert await read(second) == ("a", ["a"])
    assert address(second) == address(first)
    assert second.stop() == 0
    assert first.start_ms < 10_000
    assert second.start_ms < 5_000


@pytest.mark.fault
@pytest.mark.parametrize(
    "killed",
    [("launcher",), ("valkey", "postgres", "launcher"), ("launcher", "postgres", "valkey")],
    ids="+".join,
)
async def test_whatever_is_killed_a_start_at_once_finds_everything(
    folder: Path, account: Account, killed: tuple[str, ...]
) -> None:
    """kill -9 of the launcher, alone or with its servers: no orphan, no loss, same address."""
    stores = launch_stores(folder / "data", account)
    await write(stores, "before")
    pids = {
        "launcher": stores.launcher.pid,
        "valkey": stores.valkey_pid,
        "postgres": stores.postgres_pid,
    }
    for name in killed:
        os.kill(pids[name], signal.SIGKILL)
    again = launch_stores(folder / "data", account)
    print(  # noqa: T201 - a measurement, shown by -s
        f"start after kill -9 of {killed}: {again.start_ms:.0f} ms"
    )
    for name in ("valkey", "postgres"):
        assert process_state(pids[name]) in (None, "Z"), f"{name} outlived its launcher"
    assert await read(again) == ("before", ["before"])
    assert address(again) == address(stores)
    await write(again, "later")
    assert again.stop() == 0
    stores.launcher.wait(10)


@pytest.mark.fault
async def test_a_killed_launchers_servers_end_by_themselves(folder: Path, account: Account) -> None:
    """Without any later start there is still no orphan."""
    stores = launch_stores(folder / "data", account)
    stores.launcher.kill()
    for pid in (stores.valkey_pid, stores.postgres_pid):
        await eventually(lambda pid=pid: process_state(pid) in (None, "Z"))  # type: ignore[misc] # mypy cannot infer a lambda with a default
    stores.launcher.wait(10)
    shutil.rmtree(stores.database_url.partition("host=")[2])


def test_a_second_launcher_is_refused_in_one_line(folder: Path, account: Account) -> None:
    """It says which directory and which process, at once, and the first goes on serving."""
    first = launch_stores(folder / "data", account)
    with pytest.raises(LaunchRefused) as refused:
        launch_stores(folder / "data", account)
    assert str(refused.value) == (
        f"{folder / 'data'} is in use by another weir, process {first.launcher.pid}"
    )
    assert _ping(first)
    assert first.stop() == 0


async def test_any_path_will_do_even_one_that_only_the_launcher_can_enter(
    folder: Path, account: Account
) -> None:
    """Spaces, quotes, what URLs reserve, more bytes than a socket's path may have, and a mode that
    keeps Postgres's user out and is not changed for its sake."""
    private = folder / "private"
    private.mkdir(mode=0o700)
    if account is not None:
        os.chown(private, *account)
    stores = launch_stores(private / "a space, a quote'\"%3d#?&" / ("l" * 120), account)
    await write(stores, "a")
    assert await read(stores) == ("a", ["a"])
    assert stores.stop() == 0
    assert stat.S_IMODE(os.stat(private).st_mode) == 0o700


def test_the_list_of_processes_shows_neither_password_nor_port(
    folder: Path, account: Account
) -> None:
    """Any user may read it. And a clean stop leaves no process and nothing in /tmp."""
    stores = launch_stores(folder / "data", account)
    arguments = Path(f"/proc/{stores.valkey_pid}/cmdline").read_bytes().decode()
    with redis.Redis.from_url(stores.redis_url) as client:
        password, port = (client.connection_pool.connection_kwargs[k] for k in ("password", "port"))
    assert password not in arguments
    assert str(port) not in arguments
    socket_folder = Path(stores.database_url.partition("host=")[2])
    assert socket_folder.exists()
    assert stores.stop() == 0
    assert not socket_folder.exists()
    assert process_state(stores.valkey_pid) is None
    assert process_state(stores.postgres_pid) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root changes its user")
def test_programs_that_the_other_user_cannot_reach_are_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, open_folder: Path
) -> None:
    """A virtual environment below a folder of root's own, as in /root: copied once, and it runs."""
    from backend.embedded import binaries  # noqa: PLC0415 - patched below

    programs = binaries.postgres_programs()
    package = programs.parent.parent
    private = tmp_path / "only-root"
    private.mkdir(mode=0o700)
    for name in (package.name, f"{package.name}.libs"):
        shutil.copytree(package.parent / name, private / name, symlinks=True)
    monkeypatch.setattr(binaries, "COPIES_FOLDER", open_folder)
    user = servers.nobody()
    hidden = private / package.name / "pginstall" / "bin"
    copy = binaries.programs_for(user, hidden)
    assert open_folder in copy.parents
    assert binaries.programs_for(user, hidden) == copy
    for program in ("postgres", "initdb", "psql"):
        ran = subprocess.run(
            [copy / program, "--version"],
            user=user[0],
            group=user[1],
            env={},
            capture_output=True,
            check=False,
        )
        assert ran.stdout.startswith(program.encode())
    assert stat.S_IMODE(private.stat().st_mode) == 0o700


def _ping(stores: Launched) -> bool:
    with redis.Redis.from_url(stores.redis_url) as client:
        return bool(client.ping())
