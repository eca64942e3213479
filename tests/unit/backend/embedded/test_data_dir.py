"""The data directory: locks and private files."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from backend.embedded.data_dir import DataDir, DataDirInUse, DataDirUnusable, write_private


def test_a_second_launcher_is_refused_at_once_and_told_who_has_it(tmp_path: Path) -> None:
    """The refusal is one line with the directory and the process, and waits for nothing."""
    first = DataDir.open(tmp_path / "data")
    with pytest.raises(DataDirInUse) as refused:
        DataDir.open(tmp_path / "data", leftovers_wait_s=60)
    assert str(refused.value) == (
        f"{tmp_path / 'data'} is in use by another weir, process {os.getpid()}"
    )
    first.close()
    DataDir.open(tmp_path / "data").close()


def test_servers_left_by_a_killed_launcher_are_waited_for(tmp_path: Path) -> None:
    """A launcher that finds an earlier one's server waits until it has gone."""
    first = DataDir.open(tmp_path)
    server = subprocess.Popen(
        [sys.executable, "-c", "import sys; sys.stdin.read()"],
        stdin=subprocess.PIPE,
        pass_fds=(first.servers_fd,),
    )
    first.close()  # as the kernel does for a launcher that is killed
    with pytest.raises(DataDirInUse, match="servers that an earlier run left"):
        DataDir.open(tmp_path, leftovers_wait_s=0.02)
    server.communicate(timeout=10)
    DataDir.open(tmp_path).close()


def test_a_refused_launcher_holds_nothing(tmp_path: Path) -> None:
    """Neither lock stays with a launcher that was refused."""
    before = len(os.listdir("/dev/fd"))
    first = DataDir.open(tmp_path)
    with pytest.raises(DataDirInUse):
        DataDir.open(tmp_path)
    first.close()
    assert len(os.listdir("/dev/fd")) == before


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    """A file in the way is one clear line."""
    (tmp_path / "file").write_text("")
    with pytest.raises(DataDirUnusable, match=r"cannot use .*/file/data: Not a directory"):
        DataDir.open(tmp_path / "file" / "data")


def test_the_directory_and_its_folders_are_their_owners_alone(tmp_path: Path) -> None:
    """Nobody else may look into what holds keys and prompts' counts."""
    data_dir = DataDir.open(tmp_path / "a" / "data")
    folder = data_dir.folder("log")
    data_dir.close()
    for path in (data_dir.path, folder):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700


def test_a_private_file_is_replaced_whole_and_readable_by_its_owner_only(tmp_path: Path) -> None:
    """Whatever the mode of the file before, and leaving no draft."""
    path = tmp_path / "secrets.json"
    path.write_text("old")
    path.chmod(0o644)
    write_private(path, b"new")
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["secrets.json"]
