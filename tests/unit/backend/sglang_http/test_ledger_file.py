"""A ledger that outlives its worker."""

import os
from pathlib import Path

import pytest

from backend.sglang_http.generation import FinishReason, Usage
from backend.sglang_http.ledger import Ledger, LedgerTotals
from backend.sglang_http.ledger_file import LedgerFile, LedgerUnusable


def record(ledger: Ledger, rid: str) -> None:
    """One sequence ended."""
    ledger.record(
        rid,
        Usage(10, 4, 0),
        FinishReason.STOP,
        queued_at_ms=1,
        started_at_ms=2,
        running_at_start=1,
    )


def life(path: Path, *rids: str) -> Ledger:
    """A worker's life: it recorded these and was then gone."""
    kept = LedgerFile(path)
    ledger = Ledger()
    ledger.keep(kept)
    for rid in rids:
        record(ledger, rid)
    kept.close()
    return ledger


def rids(ledger: Ledger, since: int = 0) -> list[str]:
    """Who is in it."""
    return [entry.rid for entry in ledger.page(since).entries]


def test_entries_outlive_and_sums_do_not(tmp_path: Path) -> None:
    """The next life knows all entries under their numbers, and counts from 0."""
    path = tmp_path / "ledger"
    cursor = life(path, "a b", "c\nd").page(0).next
    later = life(path, "e")
    assert rids(later) == ["a b", "c\nd", "e"]
    assert rids(later, cursor) == ["e"]
    assert later.totals == LedgerTotals(1, 10, 0, 4)
    assert (path.stat().st_mode & 0o777) == 0o600


def test_the_ring_holds_the_latest_of_what_is_read(tmp_path: Path) -> None:
    """A file longer than the ring: its numbers stay."""
    life(tmp_path / "ledger", *(f"r{number}" for number in range(5)))
    ledger = Ledger(entries_max=2)
    kept = LedgerFile(tmp_path / "ledger")
    ledger.keep(kept)
    kept.close()
    page = ledger.page(0)
    assert (page.oldest, page.next) == (3, 5)
    assert rids(ledger) == ["r3", "r4"]


@pytest.mark.parametrize("left", [1, 5, 40])
def test_an_entry_that_a_kill_cut_off_is_removed(tmp_path: Path, left: int) -> None:
    """And what follows is written behind the last whole one."""
    path = tmp_path / "ledger"
    life(path, "a", "b")
    size = path.stat().st_size
    whole = path.read_bytes()
    path.write_bytes(whole + whole[: size // 2][:left])
    life(path, "c")
    assert rids(life(path)) == ["a", "b", "c"]


def test_one_worker_at_a_time(tmp_path: Path) -> None:
    """Two accounts in one file would be nobody's."""
    kept = LedgerFile(tmp_path / "ledger")
    with pytest.raises(LedgerUnusable, match="another worker"):
        LedgerFile(tmp_path / "ledger")
    kept.close()
    LedgerFile(tmp_path / "ledger").close()


def test_what_is_no_ledger_is_left_alone(tmp_path: Path) -> None:
    """Some other file, a folder, a place that is not there."""
    path = tmp_path / "notes"
    path.write_text("hello\n")
    for wrong in (path, tmp_path, tmp_path / "none" / "ledger"):
        with pytest.raises(LedgerUnusable):
            LedgerFile(wrong)
    assert path.read_text() == "hello\n"


def test_what_the_disk_does_not_take_is_counted() -> None:
    """The worker goes on, and says that its next life will not know them."""
    kept = LedgerFile(Path("/dev/null"))
    ledger = Ledger()
    ledger.keep(kept)
    record(ledger, "a")
    os.dup2(os.open("/dev/full", os.O_WRONLY), kept._file)
    record(ledger, "b")
    assert rids(ledger) == ["a", "b"]
    assert ledger.page(0).unwritten == 1
    kept.close()
