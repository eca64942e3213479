"""Shows what was seen of the pools as metrics."""

from gateway.domain.queue.capacity import WorkerRoom
from gateway.serving.queue_ports import PoolUse
from gateway.serving.queue_view import Uses, ceiling, class_of
from gateway.telemetry import pools as metrics


def show_pools(uses: Uses) -> None:
    """Set the gauges to this; what is not in it is not shown any more."""
    for gauge in metrics.ALL:
        gauge.clear()
    for model, use in uses.items():
        if use is not None:
            _show_pool(model, use)


def _show_pool(model: str, use: PoolUse) -> None:
    metrics.PARKED.labels(model=model).set(use.parked)
    for band, each in use.bands.items():
        labels = {"model": model, "request_class": class_of(band)}
        metrics.WAITING.labels(**labels).set(each.requests)
        metrics.WAITING_TOKENS.labels(**labels).set(each.need_tokens)
        metrics.WAITING_WEIGHTED.labels(**labels).set(each.weighted_tokens)
        metrics.OLDEST_WAIT.labels(**labels).set(each.oldest_wait_ms / 1000)
        if each.wait_ms is not None:
            metrics.PREDICTED_WAIT.labels(**labels).set(each.wait_ms / 1000)
    for room in use.rooms:
        _show_room(model, room)


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
