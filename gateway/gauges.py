"""The gauges that are read rather than counted, set whenever somebody asks for metrics."""

import math
from typing import TYPE_CHECKING

from gateway.domain.pools import pools_of
from gateway.serving.condition import WORDS
from gateway.serving.queue_gauges import show_pools
from gateway.telemetry import admission as admission_metrics
from gateway.telemetry import metrics

if TYPE_CHECKING:
    from gateway.app import Gateway


async def show_gauges(gateway: "Gateway") -> None:
    """Set them all to what is now."""
    condition = gateway.watch.condition()
    words = {*condition.unready, *condition.degraded}
    for part in WORDS:
        metrics.DEGRADED.labels(part=part).set(part in words)
    metrics.JOURNAL_FAILING.set(gateway.journal.failing)
    metrics.JOURNAL_BYTES.set(gateway.journal.bytes)
    metrics.METERING_LAG.set(gateway.shipper.lag_seconds)
    metrics.METERING_LAG_OF_ALL.set(_seconds(gateway.completeness.latest.lag_ms))
    metrics.UNSHIPPED.set(gateway.shipper.unshipped_records)
    metrics.SECOND_COPIES.set(gateway.copied.copies.entries)
    metrics.DEAD_LETTERS.set(gateway.shipper.outstanding.dead_letters)
    metrics.STRAY_ROWS.set(gateway.shipper.outstanding.stray_rows)
    metrics.MISSING.set(gateway.shipper.missing_records)
    metrics.UNCOPIED.set(gateway.copied.copies.uncopied)
    metrics.GATEWAYS_GONE.set(gateway.reaper.gone)
    for check, found in gateway.reconciling.findings.items():
        metrics.RECONCILE_FINDINGS.labels(check=check).set(found)
    metrics.UNSETTLED.set(gateway.leases.unsettled)
    admission_metrics.WITHHELD.set(gateway.leases.withheld)
    admission_metrics.EXCESS.set(gateway.leases.excess)
    for view in gateway.fleet.views():
        metrics.WORKER_HEALTHY.labels(worker=view.worker.id).set(view.healthy)
    models = (model.id for model in gateway.directory.models())
    pools = pools_of(models, gateway.directory.workers())
    show_pools(await gateway.looks.look_at(pools))


def _seconds(span_ms: int | None) -> float:
    """NaN where it is not known."""
    return math.nan if span_ms is None else span_ms / 1000
