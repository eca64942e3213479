"""A batch of journal records as billing stores it."""

from billing.postgres.dead_letters import DeadLetter
from billing.postgres.journal_gaps import Gap
from billing.postgres.journal_watermarks import Watermark
from billing.postgres.shipments import Shipment
from billing.postgres.usage_insert import JournaledRecord
from gateway.adapters.journal.backlog import Batch


def shipment_of(batch: Batch, *, gateway_id: str, before: Watermark) -> Shipment:
    """The shipment that moves the boot's watermark from `before` to the end of `batch`."""
    return Shipment(
        gateway_id=gateway_id,
        boot=batch.boot,
        rows=[
            JournaledRecord(entry.body, gateway_id, batch.boot, entry.seq) for entry in batch.ended
        ],
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
