"""Which pool serves a request, and which a worker."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tenant_examples import a_worker

from gateway.administration.checks import MODEL_ID
from gateway.domain.pools import (
    SEPARATOR,
    class_of_pool,
    model_of,
    pool_of,
    pool_of_worker,
    pools_of,
)
from gateway.domain.tenant import RequestClass, Worker

INTERACTIVE, BATCH = RequestClass.INTERACTIVE, RequestClass.BATCH
ANY = a_worker("any")
FOR_BATCH = a_worker("b", request_class=BATCH)
FOR_INTERACTIVE = a_worker("i", request_class=INTERACTIVE)


@pytest.mark.parametrize(
    ("workers", "interactive", "batch"),
    [
        ([], "m", "m"),
        ([ANY], "m", "m"),
        ([ANY, FOR_BATCH], "m", "m#batch"),
        ([ANY, FOR_INTERACTIVE], "m#interactive", "m"),
        ([FOR_INTERACTIVE, FOR_BATCH], "m#interactive", "m#batch"),
        ([FOR_BATCH], "m", "m#batch"),
        ([a_worker("drains", request_class=BATCH, draining=True)], "m", "m#batch"),
        ([a_worker("elsewhere", model="n", request_class=BATCH)], "m", "m"),
    ],
)
def test_a_class_with_workers_of_its_own_goes_to_no_others(
    workers: list[Worker], interactive: str, batch: str
) -> None:
    """And the class without goes to those that nobody reserved."""
    assert pool_of("m", INTERACTIVE, workers) == interactive
    assert pool_of("m", BATCH, workers) == batch


def test_all_pools_of_models_are_named() -> None:
    """The unreserved one always: who came before all workers were reserved may still wait there."""
    workers = [FOR_BATCH, a_worker("b2", request_class=BATCH), a_worker("n0", model="n"), ANY]
    assert pools_of(["m", "n"], workers) == ["m", "m#batch", "n"]
    assert pools_of(["m"], [FOR_INTERACTIVE, FOR_BATCH]) == ["m", "m#batch", "m#interactive"]
    assert pools_of(["n"], [FOR_BATCH]) == ["n"]


models = st.from_regex(MODEL_ID, fullmatch=True)
classes = st.sampled_from([None, *RequestClass])


@given(models, models, classes, classes)
def test_a_name_is_of_one_pool(
    model: str, other: str, one: RequestClass | None, another: RequestClass | None
) -> None:
    """Whatever a model may be called."""
    name = pool_of_worker(a_worker(model=model, request_class=one))
    assert (model_of(name), class_of_pool(name)) == (model, one)
    same = name == pool_of_worker(a_worker(model=other, request_class=another))
    assert same is ((model, one) == (other, another))


def test_no_model_is_called_like_a_reserved_pool() -> None:
    assert not MODEL_ID.fullmatch(f"m{SEPARATOR}batch")
