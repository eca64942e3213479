"""What workers say of their load while a run goes on."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Mapping

import aiohttp
import msgspec

from backend.loadtest.run import WorkerSample
from backend.loadtest.run_clock import RunClock

EVERY_MS = 1000.0
"""Of the target's time."""
EVERY_S_MIN = 0.05
"""Of ours: a faster clock is sampled less often, so as not to load the generator."""
ANSWER_S_MAX = 5.0


class _Rank(msgspec.Struct):
    num_running_reqs: int
    num_waiting_reqs: int
    num_used_tokens: int
    max_total_num_tokens: int
    num_waiting_uncached_tokens: int = 0


class _Loads(msgspec.Struct):
    loads: list[_Rank]


_decoder = msgspec.json.Decoder(_Loads)


def read_sample(worker: str, at_ms: float, body: bytes) -> WorkerSample:
    """Of an answer of `/v1/loads`, all ranks together. Raises msgspec.DecodeError."""
    ranks = _decoder.decode(body).loads
    return WorkerSample(
        at_ms=at_ms,
        worker=worker,
        running=sum(rank.num_running_reqs for rank in ranks),
        waiting=sum(rank.num_waiting_reqs for rank in ranks),
        waiting_tokens=sum(rank.num_waiting_uncached_tokens for rank in ranks),
        kv_used_tokens=sum(rank.num_used_tokens for rank in ranks),
        kv_total_tokens=sum(rank.max_total_num_tokens for rank in ranks),
    )


class LoadSampler:
    """Asks each worker once a second of the target's time. One that does not answer is left out."""

    def __init__(
        self, workers: Mapping[str, str], clock: RunClock, take: Callable[[WorkerSample], None]
    ) -> None:
        """Workers are URLs by id."""
        self._workers = {name: url.rstrip("/") for name, url in workers.items()}
        self._clock = clock
        self._take = take
        self._every_s = max(EVERY_MS / 1000 / clock.speed, EVERY_S_MIN)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Sample until the block ends."""
        if not self._workers:
            yield
            return
        timeout = aiohttp.ClientTimeout(total=ANSWER_S_MAX)
        async with aiohttp.ClientSession(timeout=timeout) as session:
            tasks = [
                asyncio.create_task(self._poll(session, name, url))
                for name, url in self._workers.items()
            ]
            try:
                yield
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    async def _poll(self, session: aiohttp.ClientSession, name: str, url: str) -> None:
        due_s = self._clock.start_s
        while True:
            await asyncio.sleep(max(0.0, due_s - time.monotonic()))
            with contextlib.suppress(aiohttp.ClientError, TimeoutError, msgspec.DecodeError):
                async with session.get(f"{url}/v1/loads") as response:
                    if response.status == 200:
                        body = await response.read()
                        self._take(read_sample(name, self._clock.now_ms(), body))
            due_s = max(due_s + self._every_s, time.monotonic())
