"""The parts of the live view: how workers, providers and latencies are shown. `null` is what is
not known, or what there was nothing to tell of."""

from collections.abc import Mapping, Sequence

from gateway.domain.circuit import CircuitState
from gateway.domain.hosted import HostedProvider
from gateway.domain.instants import shown
from gateway.domain.latency import (
    NOTHING,
    Figures,
    Measure,
    OfModel,
    OfWorker,
    Series,
    Targets,
)
from gateway.domain.pools import pool_of_worker
from gateway.domain.tenant import RequestClass
from gateway.domain.worker import WorkerView
from gateway.serving.hosted_use import Use
from gateway.serving.queue_view import Json, Uses, room_view

Measured = Mapping[Series, Figures] | None
"""None where the store does not tell."""


def worker_view(view: WorkerView, uses: Uses, measured: Measured) -> Json:
    """A worker as this gateway sees it, what all have placed on it, and how fast it was to all."""
    use = uses.get(pool_of_worker(view.worker))
    rooms = () if use is None else use.rooms
    places = next((room_view(room) for room in rooms if room.id == view.worker.id), None)
    return {
        "id": view.worker.id,
        "model": view.worker.model,
        "engine": view.worker.engine,
        "healthy": view.healthy,
        "draining": view.worker.draining,
        "class": view.worker.request_class,
        "running": view.running,
        "waiting": view.waiting,
        "in_flight": view.in_flight,
        "kv_used_tokens": view.kv_used_tokens,
        "kv_total_tokens": view.kv_total_tokens,
        "load_age_ms": view.load_age_ms,
        "version": view.engine.version,
        "cache_report": view.engine.cache_report,
        "priority_order": view.engine.priority_order,
        "context_tokens": view.engine.context_tokens,
        "places": places,
        "latency": worker_latency(view.worker.id, measured),
    }


def hosted_view(
    provider: HostedProvider,
    circuit: CircuitState,
    used: Mapping[str, Use] | None,
    measured: Measured,
) -> Json:
    """A provider, and what all gateways have running there now."""
    use = None if used is None else used.get(provider.id, Use(0, 0))
    return {
        "name": provider.name,
        "enabled": provider.enabled,
        "models": sorted(provider.models),
        "circuit": circuit,
        "running": None if use is None else use.running,
        "in_use_since": shown(use.since_ms) if use is not None and use.since_ms else None,
        "latency": worker_latency(provider.id, measured),
    }


def worker_latency(name: str, measured: Measured) -> Json | None:
    """Of all that one worker or provider served."""
    if measured is None:
        return None
    ttft, tpot = (measured.get(OfWorker(each.value, name), NOTHING) for each in Measure)
    return _latency(ttft, tpot)


def latency_views(
    models: Sequence[str], measured: Measured, targets: Mapping[RequestClass, Targets]
) -> list[Json] | None:
    """Of each model and class, against its targets."""
    if measured is None:
        return None
    views: list[Json] = []
    for model in models:
        for request_class, target in targets.items():
            ttft, tpot = (
                measured.get(OfModel(each.value, model, request_class.value), NOTHING)
                for each in Measure
            )
            views.append(
                {
                    "model": model,
                    "class": request_class.value,
                    "ttft_target_ms": target.ttft_ms,
                    "tpot_target_ms": target.tpot_ms,
                    **_latency(ttft, tpot),
                }
            )
    return views


def _latency(ttft: Figures, tpot: Figures) -> Json:
    return {
        name: {
            "ttft_p95_ms": first.p95_ms,
            "ttft_count": first.count,
            "tpot_p95_ms": each.p95_ms,
            "tpot_count": each.count,
        }
        for name, first, each in (
            ("last_minute", ttft.minute, tpot.minute),
            ("last_five_minutes", ttft.five_minutes, tpot.five_minutes),
        )
    }
