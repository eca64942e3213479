"""The simulated worker answers as real SGLang does (`make test-sglang` runs the same on that)."""

from collections.abc import Iterator

import pytest
from worker_process import running_worker

pytest.register_assert_rewrite("conformance")

from conformance.engine import Engine  # noqa: E402 - its assertions show what they compared
from conformance.table import ROOMY, TIGHT, Check, checks_of, named, run  # noqa: E402

MODEL = "simulated"
AS_STARTED = ("--enable-priority-scheduling", "--disable-priority-preemption")
"""What `weir backend sglang` gives SGLang, as far as it changes the schedule."""


@pytest.fixture(scope="module")
def roomy() -> Iterator[Engine]:
    """A worker with the sizes of the main server of tests/sglang."""
    sizes = ("--context-length", "4096", "--max-total-tokens", "16384")
    places = ("--max-running-requests", "16")
    with running_worker("simulated", *sizes, *places, *AS_STARTED) as worker:
        yield Engine(worker.url, MODEL, 4096, 16384, 16, None)


@pytest.fixture(scope="module")
def tight() -> Iterator[Engine]:
    """And one with those of its tight server."""
    sizes = ("--context-length", "2048", "--max-total-tokens", "600")
    places = ("--max-running-requests", "1", "--max-queued-requests", "2")
    with running_worker("simulated", *sizes, *places, *AS_STARTED) as worker:
        yield Engine(worker.url, MODEL, 2048, 600, 1, 2)


@pytest.mark.parametrize("check", checks_of(ROOMY), ids=named)
def test_roomy(roomy: Engine, check: Check) -> None:
    """With room for all."""
    run(check, roomy)


@pytest.mark.parametrize("check", checks_of(TIGHT), ids=named)
def test_tight(tight: Engine, check: Check) -> None:
    """With room for little."""
    run(check, tight)
