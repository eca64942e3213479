"""Between two runs the known workers come to rest."""

import asyncio
from collections.abc import Iterator

import pytest
from worker_process import WorkerProcess, connected, running_worker

from backend.loadtest.run import TargetFacts
from backend.loadtest.under_test import ServiceUnderTest


@pytest.fixture(scope="module")
def worker() -> Iterator[WorkerProcess]:
    """A simulated worker."""
    with running_worker("simulated") as running:
        yield running


def service(**workers: str) -> ServiceUnderTest:
    return ServiceUnderTest(
        "http://127.0.0.1:1",
        TargetFacts("made up", simulated=None),
        model="m",
        api_key_of=lambda _: None,
        min_tokens=False,
        timeout_s=1,
        workers=workers,
    )


async def test_it_waits_until_the_last_request_has_left(worker: WorkerProcess) -> None:
    """And no longer."""
    async with connected(worker) as client:
        stream = asyncio.create_task(client.chat_stream(max_tokens=100, min_tokens=100))
        await client.eventually_load(num_running_reqs=1)
        assert await service(w=worker.url).settle()
        assert (await client.load())["num_running_reqs"] == 0
        assert (await asyncio.wait_for(stream, 5)).complete


async def test_a_worker_that_does_not_answer_is_not_waited_for() -> None:
    """It would never be idle."""
    async with asyncio.timeout(5):
        assert await service(w="http://127.0.0.1:9").settle()


async def test_a_worker_that_stays_busy_is_given_up(
    worker: WorkerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a bounded time; it is said so."""
    monkeypatch.setattr("backend.loadtest.under_test.IDLE_WITHIN_S", 0.3)
    async with connected(worker) as client:
        stream = asyncio.create_task(client.chat_stream(max_tokens=500, min_tokens=500))
        await client.eventually_load(num_running_reqs=1)
        assert not await service(w=worker.url).settle()
        stream.cancel()
