"""Which segments may go: shipped, without an open request, and older than a restore goes back or in
the way of what has to be written now."""

import logging
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Protocol

from gateway.adapters.journal.batch import Durable
from gateway.adapters.journal.numbering import before_first_seq, last_seq
from gateway.adapters.journal.segment import SegmentKey, list_segments

logger = logging.getLogger(__name__)


class Closed(Protocol):
    """A segment that is written no more. Both figures may have to be read from the disk."""

    @property
    def key(self) -> SegmentKey: ...

    @property
    def bytes(self) -> int: ...

    def written_s(self) -> float:
        """When it was last written, Unix time."""

    def last_seq(self) -> int:
        """Its last number."""


def to_delete(
    closed: Iterable[Closed],
    shipped: Mapping[int, int],
    oldest_open: tuple[int, int] | None,
    *,
    written_before_s: float,
    bytes_to_free: int = 0,
) -> Iterator[SegmentKey]:
    """Those that nobody needs any more, of all that are closed, oldest first: last written before
    that time, or young but among the first `bytes_to_free` bytes.

    It stops at the first that must stay, so that the journal keeps no holes.
    """
    for segment in closed:
        if bytes_to_free <= 0 and segment.written_s() >= written_before_s:
            return
        last = segment.last_seq()
        if shipped.get(segment.key.boot, 0) < last:
            return
        if oldest_open is not None and oldest_open <= (segment.key.boot, last):
            return
        bytes_to_free -= segment.bytes
        yield segment.key


def delete_expired(
    directory: Path,
    durable: Durable,
    shipped: Mapping[int, int],
    *,
    written_before_s: float,
    bytes_to_free: int = 0,
) -> int:
    """Delete what `to_delete` names; returns how many segments. `shipped` is each boot's watermark.
    Raises OSError."""
    keys = [key for key in list_segments(directory) if key < durable.key]
    closed = (_File(directory, key, next_key) for key, next_key in pairwise([*keys, durable.key]))
    deleted = 0
    for key in to_delete(
        closed,
        shipped,
        durable.oldest_open,
        written_before_s=written_before_s,
        bytes_to_free=bytes_to_free,
    ):
        key.path(directory).unlink()
        deleted += 1
    if deleted:
        logger.info("journal: %d shipped segments were deleted", deleted)
    return deleted


class _File:
    """A closed segment as it lies on the disk."""

    def __init__(self, directory: Path, key: SegmentKey, following: SegmentKey) -> None:
        self.key = key
        self._path = key.path(directory)
        self._following = following.path(directory) if following.boot == key.boot else None

    @property
    def bytes(self) -> int:
        return self._path.stat().st_size

    def written_s(self) -> float:
        return self._path.stat().st_mtime

    def last_seq(self) -> int:
        # The next header says it without reading all of this one.
        last = None if self._following is None else before_first_seq(self._following)
        return last_seq(self._path) if last is None else last
