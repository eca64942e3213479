"""Which segments may go: shipped, without an open request, and older than a restore goes back."""

import logging
from collections.abc import Mapping
from pathlib import Path

from gateway.adapters.journal.batch import Durable
from gateway.adapters.journal.numbering import last_seq
from gateway.adapters.journal.segment import list_segments

logger = logging.getLogger(__name__)


def delete_expired(
    directory: Path, durable: Durable, shipped: Mapping[int, int], *, written_before_s: float
) -> int:
    """Delete what nobody needs any more and was last written before that Unix time; returns how
    many segments. `shipped` is each boot's watermark. Raises OSError.

    Oldest first, and it stops at the first that must stay, so that the journal keeps no holes.
    """
    deleted = 0
    for key in list_segments(directory):
        path = key.path(directory)
        if key >= durable.key or path.stat().st_mtime >= written_before_s:
            break
        last = last_seq(path)
        if shipped.get(key.boot, 0) < last:
            break
        if durable.oldest_open is not None and durable.oldest_open <= (key.boot, last):
            break
        path.unlink()
        deleted += 1
    if deleted:
        logger.info("journal: %d shipped segments were deleted", deleted)
    return deleted
