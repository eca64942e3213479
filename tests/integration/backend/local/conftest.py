"""One local worker for the session: the real model, loaded once."""

from collections.abc import AsyncIterator, Iterator

import pytest
from worker_process import WorkerClient, WorkerProcess, connected, running_worker


@pytest.fixture(scope="session")
def local_process() -> Iterator[WorkerProcess]:
    """The real model on the CPU."""
    with running_worker("local") as worker:
        yield worker


@pytest.fixture
async def worker(local_process: WorkerProcess) -> AsyncIterator[WorkerClient]:
    """A client of it; nothing runs before or after."""
    async with connected(local_process) as client:
        yield client
        await client.abort(abort_all=True)
        await client.eventually_load(within_s=60, num_running_reqs=0, num_waiting_reqs=0)
