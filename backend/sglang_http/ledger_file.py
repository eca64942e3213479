"""A worker's ledger on disk, so that its account outlives a kill -9: one line of JSON an entry.

The engine's own counters begin at 0 again with each process, as SGLang's do; the ledger does not.
"""

import fcntl
import os
from pathlib import Path

import msgspec

from backend.sglang_http.ledger import LedgerEntry


class LedgerUnusable(Exception):
    """The file cannot be opened, another worker has it, or it holds something else. The message is
    for a person."""


class LedgerFile:
    """The entries of one worker, of this life and earlier ones. It only grows."""

    def __init__(self, path: Path) -> None:
        """Open or create it, and read what is there. What a kill cut off at the end is removed.

        Raises LedgerUnusable.
        """
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        except OSError as error:
            raise LedgerUnusable(f"{path}: {error.strerror}") from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.entries = self._read(path)
        except OSError:
            os.close(self._file)
            raise LedgerUnusable(f"{path}: another worker writes it") from None
        except LedgerUnusable:
            os.close(self._file)
            raise

    def append(self, entry: LedgerEntry) -> bool:
        """Hand one to the operating system, which keeps it whatever becomes of this process; False
        where it did not take it."""
        line = msgspec.json.encode(entry) + b"\n"
        try:
            written = os.write(self._file, line)
            if written != len(line):
                os.ftruncate(self._file, os.fstat(self._file).st_size - written)
        except OSError:
            return False
        return written == len(line)

    def close(self) -> None:
        """Let another worker have it."""
        os.close(self._file)

    def _read(self, path: Path) -> list[LedgerEntry]:
        data = path.read_bytes()
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            os.ftruncate(self._file, whole)
        try:
            lines = data[:whole].split(b"\n")[:-1]
            return [msgspec.json.decode(line, type=LedgerEntry) for line in lines]
        except msgspec.MsgspecError:
            raise LedgerUnusable(f"{path}: not a worker's ledger") from None
