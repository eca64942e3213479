from pathlib import Path

import pytest

from gateway.adapters.journal.identity import (
    IDENTITY_NAME,
    DirectoryLock,
    Identity,
    JournalUnusable,
    begin_boot,
    read_identity,
)
from gateway.adapters.journal.storage import Storage


def test_one_gateway_a_directory(tmp_path: Path) -> None:
    """A second gateway gets one clear line, and the directory once the first is gone."""
    first = DirectoryLock.take(tmp_path / "journal")
    with pytest.raises(JournalUnusable) as caught:
        DirectoryLock.take(tmp_path / "journal")
    assert caught.value.message == "journal directory is in use by another gateway"
    first.release()
    first.release()
    DirectoryLock.take(tmp_path / "journal").release()


def test_a_directory_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    """A path through a file says so, without the path."""
    (tmp_path / "file").touch()
    with pytest.raises(JournalUnusable) as caught:
        DirectoryLock.take(tmp_path / "file" / "journal")
    assert str(tmp_path) not in caught.value.message


def test_boots_grow_and_the_id_stays(tmp_path: Path) -> None:
    """Each boot has a greater number than any before, also where the clock went back."""
    first = begin_boot(tmp_path, Storage(), found=None, now_ms=1_000)
    second = begin_boot(tmp_path, Storage(), found=read_identity(tmp_path), now_ms=400)
    assert (first.boot, second.boot) == (1_000, 1_001)
    assert first.gateway_id == second.gateway_id
    assert read_identity(tmp_path) == second


def test_two_directories_are_two_gateways(tmp_path: Path) -> None:
    """New directories get ids of their own."""
    ids = set()
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        ids.add(begin_boot(tmp_path / name, Storage(), found=None, now_ms=1).gateway_id)
    assert len(ids) == 2


def test_a_restored_snapshot_repeats_no_boot(tmp_path: Path) -> None:
    """A directory put back to an older state counts on from the clock, not from its old number."""
    begin_boot(tmp_path, Storage(), found=Identity("gw-1", 5), now_ms=10_000)
    restored = begin_boot(tmp_path, Storage(), found=Identity("gw-1", 5), now_ms=20_000)
    assert restored.boot == 20_000


def test_a_damaged_identity_is_none(tmp_path: Path) -> None:
    """Half a file is no identity."""
    (tmp_path / IDENTITY_NAME).write_bytes(b'{"gateway_id": "gw')
    assert read_identity(tmp_path) is None
