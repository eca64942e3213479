"""A batch of journal records as billing stores it."""

import asyncio
import time
from collections.abc import Coroutine
from dataclasses import dataclass

from billing.postgres.dead_letters import DeadLetter
from billing.postgres.journal_gaps import Gap
from billing.postgres.journal_watermarks import Watermark
from billing.postgres.shipments import Shipment, encode_ahead
from billing.postgres.usage_direct import Encoded
from billing.postgres.usage_run import Run
from gateway.adapters.journal.backlog import Backlog, Batch


@dataclass(frozen=True)
class Load:
    """A batch with its rows as Postgres takes them, ready before its turn comes."""

    batch: Batch
    rows: Run
    encoded: Encoded | None
    read_at_s: float
    """Before it was read: all that was durable then is in it, where the batch is `complete`."""


class Loads:
    """Reads a backlog and makes its batches ready, in a thread: one at a time."""

    def __init__(self, backlog: Backlog, rows_max: int, *, gateway_id: str) -> None:
        self._backlog = backlog
        self._rows_max = rows_max
        self._gateway_id = gateway_id

    async def read(self, after: Batch | None = None) -> Load | None:
        """The next one. Raises JournalIncomplete."""
        return await asyncio.to_thread(self._read, after)

    async def read_beside(self, load: Load, shipping: Coroutine[None, None, None]) -> Load | None:
        """What follows `load`, read while it is shipped; None where that may be nothing. Raises
        what `shipping` does, else JournalIncomplete. Nothing reads any more on return: the place
        may be sought anew."""
        if load.batch.complete:
            await shipping
            return None
        ahead = asyncio.create_task(self.read(load.batch))
        try:
            await shipping
        finally:
            await asyncio.wait([ahead])
            failure = None if ahead.cancelled() else ahead.exception()
        if failure is not None:
            raise failure
        return ahead.result()

    def _read(self, after: Batch | None) -> Load | None:
        read_at_s = time.time()
        batch = self._backlog.read(self._rows_max, after=after)
        if batch is None:
            return None
        rows = Run(batch.ended, self._gateway_id, batch.boot)
        return Load(batch, rows, encode_ahead(rows), read_at_s)


def shipment_of(load: Load, *, gateway_id: str, before: Watermark) -> Shipment:
    """The shipment that moves the boot's watermark from `before` to the end of the batch."""
    batch = load.batch
    return Shipment(
        gateway_id=gateway_id,
        boot=batch.boot,
        rows=load.rows,
        encoded=load.encoded,
        letters=[
            DeadLetter(gateway_id, each.source, None, "unreadable", each.payload)
            for each in batch.unreadable
        ],
        gaps=[Gap(*gap) for gap in batch.gaps],
        before=before,
        after=Watermark(
            seq=batch.seq,
            admitted_count=before.admitted_count + batch.admitted_count,
            ended_count=before.ended_count + len(batch.ended) + len(batch.unreadable),
            missing_count=before.missing_count + batch.missing_count,
        ),
    )
