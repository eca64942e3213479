"""Pools: the workers that one queue serves. Those of a model that are reserved for a class are a
pool of their own. Pure."""

from collections import defaultdict
from collections.abc import Container, Iterable

from gateway.domain.tenant import RequestClass, Worker

SEPARATOR = "#"
"""Between model and class. No model's id holds it."""


def pool_of(model: str, request_class: RequestClass, workers: Iterable[Worker]) -> str:
    """The pool that serves requests of this class. `workers` are all that are registered, whether
    they may take a stream or not: a class whose own workers are away waits for them."""
    return pool_among(model, request_class, {pool_of_worker(worker) for worker in workers})


def pool_of_worker(worker: Worker) -> str:
    """The only pool that a worker serves."""
    return _name(worker.model, worker.request_class)


def pool_among(model: str, request_class: RequestClass, pools: Container[str]) -> str:
    """As `pool_of`, by the names of all pools that a worker is registered in."""
    reserved = _name(model, request_class)
    return reserved if reserved in pools else model


def pools_of(models: Iterable[str], workers: Iterable[Worker]) -> list[str]:
    """All pools of these models: of each the unreserved one, though nobody may be in it, then those
    that a worker is registered in."""
    reserved: defaultdict[str, set[str]] = defaultdict(set)
    for worker in workers:
        if worker.request_class is not None:
            reserved[worker.model].add(pool_of_worker(worker))
    return [pool for model in models for pool in (model, *sorted(reserved[model]))]


def model_of(pool: str) -> str:
    """The model that a pool serves."""
    return pool.partition(SEPARATOR)[0]


def class_of_pool(pool: str) -> RequestClass | None:
    """The class that it is reserved for; None where it serves whatever has no pool of its own."""
    name = pool.partition(SEPARATOR)[2]
    return RequestClass(name) if name else None


def _name(model: str, request_class: RequestClass | None) -> str:
    return model if request_class is None else f"{model}{SEPARATOR}{request_class.value}"
