"""A batch of journal records as billing stores it."""

import time
from dataclasses import dataclass

from billing.postgres.dead_letters import DeadLetter
from billing.postgres.journal_gaps import Gap
from billing.postgres.journal_watermarks import Watermark
from billing.postgres.shipments import Shipment, encode_ahead
from billing.postgres.usage_direct import Encoded
from billing.postgres.usage_insert import JournaledRecord
from gateway.adapters.journal.backlog import Backlog, Batch


@dataclass(frozen=True)
class Load:
    """A batch with its rows as Postgres takes them, ready before its turn comes."""

    batch: Batch
    rows: list[JournaledRecord]
    encoded: Encoded | None
    read_at_s: float
    """Before it was read: all that was durable then is in it, where the batch is `complete`."""


def read_load(
    backlog: Backlog, rows_max: int, *, gateway_id: str, after: Batch | None = None
) -> Load | None:
    """The backlog's next batch, made ready. Blocks: for a thread of its own. As `Backlog.read`."""
    read_at_s = time.time()
    batch = backlog.read(rows_max, after=after)
    if batch is None:
        return None
    rows = [JournaledRecord(entry.body, gateway_id, batch.boot, entry.seq) for entry in batch.ended]
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
