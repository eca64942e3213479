"""Routing: filter, score, pick. Pure.

For now the score is what waits and runs on a worker; prefix locality and KV pressure join it with
the fleet issue.
"""

from collections.abc import Collection, Sequence

from gateway.domain.worker import WorkerView


def eligible(views: Sequence[WorkerView], *, excluded: Collection[str] = ()) -> list[WorkerView]:
    """Workers that may take a new stream: healthy, not draining, not tried already."""
    return [
        view
        for view in views
        if view.healthy and not view.worker.draining and view.worker.id not in excluded
    ]


def score(view: WorkerView) -> tuple[int, str]:
    """Lower is better: streams on the worker as far as known; ties by name, so that a test can
    tell what will be picked."""
    reported = (view.running or 0) + (view.waiting or 0)
    return max(view.in_flight, reported), view.worker.id


def pick(views: Sequence[WorkerView], *, excluded: Collection[str] = ()) -> WorkerView | None:
    """The worker to send a stream to, or None where none may take it."""
    return min(eligible(views, excluded=excluded), key=score, default=None)
