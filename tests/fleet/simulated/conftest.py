"""Simulated workers as processes, one of each kind for the session."""

from collections.abc import AsyncIterator, Iterator

import pytest
from worker_process import WorkerClient, WorkerProcess, connected, running_worker


@pytest.fixture(scope="session")
def simulated_process() -> Iterator[WorkerProcess]:
    """A worker whose context is that of the captured SGLang."""
    with running_worker("simulated", "--model", "tiny", "--context-length", "2048") as worker:
        yield worker


@pytest.fixture
async def worker(simulated_process: WorkerProcess) -> AsyncIterator[WorkerClient]:
    """A client of the session's worker, which has no faults armed and runs nothing."""
    async with connected(simulated_process) as client:
        yield client
        await client.session.delete("/weir/faults")
        await client.abort(abort_all=True)
        await client.eventually_load(num_running_reqs=0, num_waiting_reqs=0)


@pytest.fixture(scope="session")
def narrow_process() -> Iterator[WorkerProcess]:
    """A worker with two places and three queue places."""
    limits = ["--max-running-requests", "2", "--max-queued-requests", "3"]
    with running_worker("simulated", "--model", "tiny", *limits) as worker:
        yield worker


@pytest.fixture
async def narrow(narrow_process: WorkerProcess) -> AsyncIterator[WorkerClient]:
    """A client of it, which runs nothing."""
    async with connected(narrow_process) as client:
        yield client
        await client.abort(abort_all=True)
        await client.eventually_load(num_running_reqs=0, num_waiting_reqs=0)
