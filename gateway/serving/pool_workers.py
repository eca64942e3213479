"""The workers of one pool, as the fleet knows them."""

from gateway.domain.pools import model_of, pool_of_worker
from gateway.domain.worker import WorkerView
from gateway.serving.ports import Fleet


def workers_of(fleet: Fleet, pool: str) -> list[WorkerView]:
    """All of them, whether they may take a stream or not; of no other pool of the model."""
    views = fleet.views(model_of(pool))
    return [view for view in views if pool_of_worker(view.worker) == pool]
