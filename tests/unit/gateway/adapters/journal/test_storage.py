import errno
import os
from pathlib import Path

import pytest

from gateway.adapters.journal.storage import Storage


def test_a_file_is_its_owners_only(tmp_path: Path) -> None:
    """A journal names tenants and keys: nobody else on the machine reads it."""
    descriptor = Storage().create(tmp_path / "a")
    os.close(descriptor)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o600


def test_a_short_write_is_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the system takes only part, the rest follows."""
    whole = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda fd, data, at: whole(fd, bytes(data[:3]), at))
    storage = Storage()
    descriptor = storage.create(tmp_path / "a")
    storage.write(descriptor, b"0123456789", 2)
    os.close(descriptor)
    assert (tmp_path / "a").read_bytes() == b"\0\x000123456789"


def test_space_is_reserved_where_the_system_cannot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file system without fallocate gets real zeros instead."""

    def refuse(*_: int) -> None:
        raise OSError(errno.EOPNOTSUPP, "not here")

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    storage = Storage()
    descriptor = storage.create(tmp_path / "a")
    storage.reserve(descriptor, 0, 3 * 1024 * 1024 + 5)
    os.close(descriptor)
    assert (tmp_path / "a").stat().st_blocks * 512 >= 3 * 1024 * 1024


def test_a_full_disk_is_not_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ENOSPC on a reservation reaches the caller."""

    def refuse(*_: int) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    storage = Storage()
    descriptor = storage.create(tmp_path / "a")
    with pytest.raises(OSError, match="full"):
        storage.reserve(descriptor, 0, 10)
    os.close(descriptor)


def test_replace_is_all_or_nothing(tmp_path: Path) -> None:
    """The new text stands, no draft is left, and a leftover draft is no hindrance."""
    target = tmp_path / "identity.json"
    (tmp_path / "identity.json.draft").write_bytes(b"half")
    Storage().replace(target, b"one")
    Storage().replace(target, b"two")
    assert target.read_bytes() == b"two"
    assert [path.name for path in tmp_path.iterdir()] == ["identity.json"]
