"""What goes into a group commit, and what comes of it."""

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple
from uuid import UUID

from gateway.adapters.journal.entries import Kind
from gateway.adapters.journal.open_requests import end_bytes
from gateway.adapters.journal.segment import SegmentKey
from gateway.domain.lease import Admitted


@dataclass(slots=True, eq=False)
class Append:
    """One entry to write. `admitted` is the admission itself, None for an end."""

    request_id: UUID
    body: bytes
    admitted: Admitted | None

    @property
    def kind(self) -> Kind:
        """What the entry is tagged as."""
        return "ended" if self.admitted is None else "admitted"

    @property
    def end_bytes(self) -> int:
        """Disk space to keep for the end of an admission; 0 for an end."""
        return 0 if self.admitted is None else end_bytes(self.admitted, len(self.body))


class Fate(Enum):
    """What became of one appended entry."""

    DURABLE = "durable"
    REFUSED = "refused"
    """An admission that could not be made durable: the request must not run."""
    SPARE = "spare"
    """An end that the file did not take: it must be kept elsewhere."""


class Durable(NamedTuple):
    """How far the journal is on the disk."""

    key: SegmentKey
    end: int
    """Bytes of that segment that are durable."""
    seq: int
    """Last durable sequence number of that boot; 0 before the first."""
    oldest_open: tuple[int, int] | None = None
    """Boot and sequence number of the oldest admission that has not ended."""
    open_count: int = 0
    """Admissions up to that number, of any boot, that have not ended."""
