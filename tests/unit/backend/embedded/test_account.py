"""Which user Postgres runs as."""

import os
import pwd
from pathlib import Path

import pytest

from backend.embedded.account import postgres_account
from backend.embedded.data_dir import DataDirUnusable


def entry(name: str, uid: int) -> pwd.struct_passwd:
    """A line of the system's list of users."""
    return pwd.struct_passwd((name, "x", uid, uid + 1, "", "/", "/bin/false"))


def users(monkeypatch: pytest.MonkeyPatch, present_uid: int, *entries: pwd.struct_passwd) -> None:
    """Let the system have these users, and us be one of them."""
    by_name = {each.pw_name: each for each in entries}
    by_uid = {each.pw_uid: each for each in entries}
    monkeypatch.setattr(os, "geteuid", lambda: present_uid)
    monkeypatch.setattr(pwd, "getpwnam", by_name.__getitem__)
    monkeypatch.setattr(pwd, "getpwuid", by_uid.__getitem__)


def test_an_ordinary_user_runs_it_as_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No change of user where none is needed."""
    users(monkeypatch, 1000, entry("ada", 1000))
    assert postgres_account(tmp_path / "none") is None


def test_root_takes_the_first_unprivileged_user_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`postgres` before `nobody`, and never one that is root by another name."""
    users(monkeypatch, 0, entry("nobody", 65534), entry("postgres", 0))
    assert postgres_account(tmp_path / "none") == (65534, 65535)
    users(monkeypatch, 0, entry("nobody", 65534), entry("postgres", 101))
    assert postgres_account(tmp_path / "none") == (101, 102)


def test_root_without_such_a_user_is_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line that says what to do."""
    users(monkeypatch, 0)
    with pytest.raises(DataDirUnusable, match="start as another user"):
        postgres_account(tmp_path / "none")


def test_a_user_without_a_name_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """initdb refuses such a user; the line says what to do instead."""
    users(monkeypatch, 1234)
    with pytest.raises(DataDirUnusable, match="WEIR_DATABASE_URL"):
        postgres_account(tmp_path / "none")


def test_data_of_another_user_are_not_touched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Started once as root and then not, it says whose the data are."""
    users(monkeypatch, os.getuid() + 1, entry("ada", os.getuid() + 1))
    with pytest.raises(DataDirUnusable, match=f"belongs to user {os.getuid()}"):
        postgres_account(tmp_path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_root_follows_the_owner_of_the_data(tmp_path: Path) -> None:
    """Data that an ordinary user made are served as that user."""
    os.chown(tmp_path, 1234, 2345)
    assert postgres_account(tmp_path) == (1234, 2345)
