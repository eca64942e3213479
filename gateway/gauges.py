"""The gauges that are read rather than counted, set whenever somebody asks for metrics."""

import math
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from opentelemetry.sdk.resources import OTELResourceDetector, Resource

from gateway.domain.pools import pools_of
from gateway.domain.tenant import RequestClass
from gateway.domain.worker import WorkerView
from gateway.serving.condition import WORDS
from gateway.serving.queue_gauges import show_pools
from gateway.telemetry import admission as admission_metrics
from gateway.telemetry import metrics, process, workers
from gateway.telemetry.going import forget_gone
from gateway.telemetry.metrics_push import MetricsPush

if TYPE_CHECKING:
    from gateway.app import Gateway


def open_push(gateway: "Gateway") -> MetricsPush | None:
    """What sends the metrics to a collector; None where none is named."""
    settings = gateway.settings
    if not settings.otlp_metrics_endpoint:
        return None
    return MetricsPush(
        settings.otlp_metrics_endpoint,
        resource_of(gateway.journal.gateway_id),
        lambda: show_gauges(gateway),
        period_ms=settings.metrics_push_ms,
    )


def resource_of(gateway_id: str) -> Resource:
    """Who tells: OpenTelemetry's own variables come first, but for which gateway it is."""
    own = Resource({"service.name": "weir-gateway", "service.version": process.VERSION})
    instance = Resource({"service.instance.id": gateway_id})
    return own.merge(OTELResourceDetector().detect()).merge(instance)


def telemetry_loops(gateway: "Gateway") -> list[Coroutine[Any, Any, None]]:
    """What watches the process, and sends metrics where a collector is named."""
    pushing = [] if gateway.push is None else [gateway.push.run()]
    return [process.watch_loop_lag(), *pushing]


async def show_gauges(gateway: "Gateway") -> None:
    """Set them all to what is now, and forget what is not there any more."""
    models = [model.id for model in gateway.directory.models()]
    pools = pools_of(models, gateway.directory.workers())
    uses = await gateway.looks.look_at(pools)
    # Nothing is awaited from here on: who reads next sees all of it, of one moment.
    show_pools(uses)
    _show_condition(gateway)
    _show_metering(gateway)
    _show_process(gateway)
    _show_workers(gateway.fleet.views())
    providers = [each.id for each in gateway.directory.hosted_providers()]
    gateway.fallback.show(*providers)
    forget_gone(
        {
            "model": models,
            "provider": ["self", *providers],
            "worker": [worker.id for worker in gateway.directory.workers()],
        }
    )


def _show_condition(gateway: "Gateway") -> None:
    condition = gateway.watch.condition()
    words = {*condition.unready, *condition.degraded}
    for part in WORDS:
        metrics.DEGRADED.labels(part).set(part in words)
    process.DRAINING.set(gateway.watch.draining)
    metrics.UNSETTLED.set(gateway.leases.unsettled)
    admission_metrics.WITHHELD.set(gateway.leases.withheld)
    admission_metrics.EXCESS.set(gateway.leases.excess)


def _show_metering(gateway: "Gateway") -> None:
    metrics.JOURNAL_FAILING.set(gateway.journal.failing)
    metrics.JOURNAL_BYTES.set(gateway.journal.bytes)
    process.JOURNAL_BYTES_MAX.set(gateway.settings.journal_bytes_max)
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
        metrics.RECONCILE_FINDINGS.labels(check).set(found)


def _show_process(gateway: "Gateway") -> None:
    settings = gateway.settings
    process.BODY_BYTES.set(gateway.body_room.held_bytes)
    process.DIRECTORY_AGE.set(gateway.directory.age_ms / 1000)
    process.REVOCATIONS_AGE.set(gateway.directory.revocations_age_ms / 1000)
    for measure, request_class, target_ms in (
        ("ttft", RequestClass.INTERACTIVE, settings.ttft_target_ms),
        ("ttft", RequestClass.BATCH, settings.ttft_batch_target_ms),
        ("tpot", RequestClass.INTERACTIVE, settings.queue_tpot_ms),
    ):
        process.TARGET.labels(measure, request_class.value).set(target_ms / 1000)


def _show_workers(views: list[WorkerView]) -> None:
    for gauge in workers.ALL:
        gauge.clear()
    for view in views:
        worker = view.worker
        workers.HEALTHY.labels(worker.id).set(view.healthy)
        workers.INFO.labels(
            worker.model,
            worker.id,
            "any" if worker.request_class is None else worker.request_class.value,
            str(worker.draining).lower(),
            str(view.simulated).lower(),
        ).set(1)
        workers.IN_FLIGHT.labels(worker.model, worker.id).set(view.in_flight)
        for gauge, number in (
            (workers.RUNNING, view.running),
            (workers.WAITING, view.waiting),
            (workers.KV_USED, view.kv_used_tokens),
            (workers.KV_TOTAL, view.kv_total_tokens),
            (workers.LOAD_AGE, None if view.load_age_ms is None else view.load_age_ms / 1000),
        ):
            if number is not None:
                gauge.labels(worker.model, worker.id).set(number)


def _seconds(span_ms: int | None) -> float:
    """NaN where it is not known."""
    return math.nan if span_ms is None else span_ms / 1000
