"""How much of its disk a journal takes, against the most that it may."""

import contextlib
from pathlib import Path

from gateway.adapters.journal.segment import SegmentKey, list_segments


class JournalSpace:
    """Counts the closed segments; whoever asks adds the one that is written.

    Admissions that were refused for want of it are tried again below seven eighths.
    The bound is for admissions: ends go beyond it, by at most what is reserved for them.
    """

    def __init__(self, directory: Path, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self._directory = directory
        self._closed_bytes = 0

    def count(self, current: SegmentKey) -> None:
        """Look at the files again. Where that fails what was counted before stands."""
        with contextlib.suppress(OSError):
            closed = (key for key in list_segments(self._directory) if key != current)
            self._closed_bytes = sum(key.path(self._directory).stat().st_size for key in closed)

    def used(self, current_bytes: int) -> int:
        """All segments, with so much in the one that is written."""
        return self._closed_bytes + current_bytes

    def holds(self, current_bytes: int) -> bool:
        """Whether so much may be in the one that is written."""
        return self.used(current_bytes) <= self.bytes_max

    def to_free(self, current_bytes: int) -> int:
        """Bytes of shipped segments to give up though a restore might want them: none until seven
        eighths are taken, then as much as leaves three quarters."""
        used = self.used(current_bytes)
        return 0 if used * 8 <= self.bytes_max * 7 else used - self.bytes_max * 3 // 4
