"""Requests admitted and not yet ended, and the disk space kept for their ends."""

from typing import NamedTuple
from uuid import UUID

from gateway.domain.lease import Admitted

RESERVE_BASE_BYTES = 1024
RESERVE_PER_SEQUENCE_BYTES = 512


class _Open(NamedTuple):
    entry: Admitted
    boot: int
    seq: int
    reserved_bytes: int


def end_bytes(entry: Admitted, body_bytes: int) -> int:
    """Room for the end of an admission whose own body has that length: the same names again, and
    an attempt a sequence."""
    return RESERVE_BASE_BYTES + body_bytes + RESERVE_PER_SEQUENCE_BYTES * entry.sequences


class OpenRequests:
    """In the order of admission."""

    def __init__(self) -> None:
        self.reserved_bytes = 0
        self._open: dict[UUID, _Open] = {}

    def __len__(self) -> int:
        return len(self._open)

    def add(self, entry: Admitted, *, boot: int, seq: int, reserved_bytes: int) -> None:
        """It is admitted, by the entry of that number."""
        self.end(entry.request_id)
        self._open[entry.request_id] = _Open(entry, boot, seq, reserved_bytes)
        self.reserved_bytes += reserved_bytes

    def end(self, request_id: UUID) -> None:
        """It has ended; one that is not open is passed over."""
        closed = self._open.pop(request_id, None)
        if closed is not None:
            self.reserved_bytes -= closed.reserved_bytes

    def entries(self) -> tuple[Admitted, ...]:
        """All, oldest first."""
        return tuple(each.entry for each in self._open.values())

    @property
    def oldest(self) -> tuple[int, int] | None:
        """Boot and sequence number of the oldest admission."""
        first = next(iter(self._open.values()), None)
        return None if first is None else (first.boot, first.seq)
