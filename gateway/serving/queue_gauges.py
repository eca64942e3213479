"""Shows what was seen of the pools as metrics."""

from collections.abc import Mapping

from gateway.domain.queue.capacity import WorkerRoom
from gateway.domain.queue.tickets import Band
from gateway.serving.queue_ports import PoolUse
from gateway.serving.queue_view import Uses, ceiling, class_of, known_by_model, serving
from gateway.telemetry import pools as metrics


def show_pools(uses: Uses) -> None:
    """Set the gauges to this; what is not in it is not shown any more. A class may wait in two
    pools of a model, after a worker was reserved: both count."""
    for gauge in metrics.ALL:
        gauge.clear()
    for model, pools in known_by_model(uses).items():
        metrics.PARKED.labels(model=model).set(sum(use.parked for use in pools.values()))
        for band in Band:
            _show_class(model, band, pools)
        for use in pools.values():
            for room in use.rooms:
                _show_room(model, room)


def _show_class(model: str, band: Band, pools: Mapping[str, PoolUse]) -> None:
    labels = {"model": model, "request_class": class_of(band)}
    waiting = [use.bands[band] for use in pools.values()]
    metrics.WAITING.labels(**labels).set(sum(each.requests for each in waiting))
    metrics.WAITING_TOKENS.labels(**labels).set(sum(each.need_tokens for each in waiting))
    metrics.WAITING_WEIGHTED.labels(**labels).set(sum(each.weighted_tokens for each in waiting))
    metrics.OLDEST_WAIT.labels(**labels).set(max(each.oldest_wait_ms for each in waiting) / 1000)
    predicted_ms = serving(band, model, pools).bands[band].wait_ms
    if predicted_ms is not None:
        metrics.PREDICTED_WAIT.labels(**labels).set(predicted_ms / 1000)


def _show_room(model: str, room: WorkerRoom) -> None:
    labels = {"model": model, "worker": room.id}
    metrics.PLACE_SEQUENCES.labels(**labels).set(room.running)
    metrics.PLACE_TOKENS.labels(**labels).set(room.tokens)
    for kind, number in (
        ("all", room.sequences_max),
        ("batch", room.batch_max),
        ("tokens", room.tokens_max),
    ):
        known = ceiling(number)
        if known is not None:
            metrics.CEILING.labels(**labels, kind=kind).set(known)
