"""A journal's directory as reconciliation reads it: every end and admission, whoever writes there
meanwhile. Nothing is locked or changed."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

from billing.domain.usage_record import UsageRecord
from billing.postgres.usage_insert import JournaledRecord
from gateway.adapters.journal.entries import EndedEntry, UndecodableRecord, decode
from gateway.adapters.journal.reader import read_whole
from gateway.adapters.journal.segment import SegmentKey, list_segments
from gateway.adapters.journal.sight import journals_below, look_at
from gateway.errors import NotFound


@dataclass(frozen=True)
class JournalFiles:
    """What a directory holds. A segment that is deleted while it is read is passed over: it was
    shipped long ago."""

    directory: Path
    gateway_id: str

    def ends(self, shipped: dict[int, int], *, at_most: int | None = None) -> "Ends":
        """All ends in it, by whether they are said to be in Postgres, `shipped` being the last
        number of each boot that is. With `at_most` the latest segments are enough that hold so
        many. Raises OSError."""
        found = Ends()
        for key in reversed(list_segments(self.directory)):
            for boot, entry in self._read(key):
                if entry.seq <= shipped.get(boot, 0):
                    row = JournaledRecord(entry.body, self.gateway_id, boot, entry.seq)
                    found.shipped.setdefault(entry.body.request_id, row)
                else:
                    found.not_shipped += 1
            if at_most is not None and len(found.shipped) >= at_most:
                break
        return found

    def _read(self, key: SegmentKey) -> Iterator[tuple[int, EndedEntry]]:
        path = key.path(self.directory)
        try:
            for stretch in read_whole(path):
                for frame in stretch.frames:
                    entry = _ended(frame.payload)
                    if entry is not None:
                        yield key.boot, entry
        except FileNotFoundError:
            return


@dataclass
class Ends:
    """Ends of one journal, each request's once."""

    shipped: dict[UUID, JournaledRecord] = field(default_factory=dict)
    not_shipped: int = 0

    @property
    def records(self) -> list[UsageRecord]:
        """What they say."""
        return [row.record for row in self.shipped.values()]


def open_journals(directory: Path) -> list[JournalFiles]:
    """The journal in `directory`, or those in its folders. Raises NotFound where there is none,
    OSError."""
    found = []
    for path in journals_below(directory):
        gateway_id = look_at(path).gateway_id
        if gateway_id is not None:
            found.append(JournalFiles(path, gateway_id))
    if not found:
        raise NotFound("there is no journal in that directory", code="journal_not_found")
    return found


def _ended(payload: bytes) -> EndedEntry | None:
    try:
        entry = decode(payload)
    except UndecodableRecord:
        return None
    return entry if isinstance(entry, EndedEntry) else None
