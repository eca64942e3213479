"""Routing: filter, score, pick. Pure.

For now the score is what waits and runs on a worker; prefix locality and KV pressure join it with
the fleet issue.
"""

from collections.abc import Collection, Sequence

from gateway.domain.engine_facts import NOTHING_KNOWN, EngineFacts, Need
from gateway.domain.worker import WorkerView


def eligible(
    views: Sequence[WorkerView], *, excluded: Collection[str] = (), need: Need | None = None
) -> list[WorkerView]:
    """Workers that may take a new stream: healthy, not draining, not tried already, and with an
    engine that can hold what it needs, where that is known."""
    return [
        view
        for view in views
        if view.healthy
        and not view.worker.draining
        and view.worker.id not in excluded
        and (need is None or view.engine.holds(need))
    ]


def facts_of(views: Sequence[WorkerView], worker_id: str) -> EngineFacts:
    """What is known of one worker's engine; of an unknown worker nothing."""
    return next((view.engine for view in views if view.worker.id == worker_id), NOTHING_KNOWN)


def score(view: WorkerView) -> tuple[int, str]:
    """Lower is better: streams on the worker as far as known; ties by name, so that a test can
    tell what will be picked."""
    reported = (view.running or 0) + (view.waiting or 0)
    return max(view.in_flight, reported), view.worker.id


def pick(
    views: Sequence[WorkerView], *, excluded: Collection[str] = (), need: Need | None = None
) -> WorkerView | None:
    """The worker to send a stream to, or None where none may take it."""
    return min(eligible(views, excluded=excluded, need=need), key=score, default=None)
