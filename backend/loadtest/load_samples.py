"""What workers say of their load while a run goes on."""

import asyncio
import contextlib
import re
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from math import inf

import aiohttp
import msgspec

from backend.loadtest.run import WorkerSample
from backend.loadtest.run_clock import RunClock

EVERY_MS = 1000.0
"""Of the target's time."""
EVERY_S_MIN = 0.05
"""Of ours: a faster clock is sampled less often, so as not to load the generator."""
ANSWER_S_MAX = 5.0
STEP_LAG_EVERY_S = 1.0
"""Of ours. A worker says the worst of its last seconds, and what it writes for it takes time from
its steps."""
_STEP_LAG = re.compile(rb"^weir_simulated_step_lag_ms(?:\{[^}\n]*\})? (\S+)$", re.MULTILINE)


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


def read_step_lag_ms(metrics: bytes) -> float | None:
    """Of a `/metrics`; None where it is not a simulated worker's."""
    found = _STEP_LAG.search(metrics)
    try:
        return None if found is None else float(found[1])
    except ValueError:
        return None


class LoadSampler:
    """Asks each worker once a second of the target's time, and simulated ones besides how late
    their steps end. One that does not answer is left out."""

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
        due_s = lag_due_s = self._clock.start_s
        while True:
            await asyncio.sleep(max(0.0, due_s - time.monotonic()))
            with contextlib.suppress(aiohttp.ClientError, TimeoutError, msgspec.DecodeError):
                if (body := await _answer(session, f"{url}/v1/loads")) is not None:
                    sample = read_sample(name, self._clock.now_ms(), body)
                    lag_ms: float | None = None
                    if time.monotonic() >= lag_due_s:
                        metrics = await _metrics(session, url)
                        lag_ms = read_step_lag_ms(metrics or b"")
                        # Who has metrics without it is not simulated; they may be long.
                        simulated = metrics is None or lag_ms is not None
                        lag_due_s = time.monotonic() + STEP_LAG_EVERY_S if simulated else inf
                    self._take(replace(sample, step_lag_ms=lag_ms))
            due_s = max(due_s + self._every_s, time.monotonic())


async def _metrics(session: aiohttp.ClientSession, url: str) -> bytes | None:
    try:
        return await _answer(session, f"{url}/metrics")
    except (aiohttp.ClientError, TimeoutError):
        return None


async def _answer(session: aiohttp.ClientSession, url: str) -> bytes | None:
    """None where its status is not 200. Raises aiohttp.ClientError and TimeoutError."""
    async with session.get(url) as response:
        return await response.read() if response.status == 200 else None
