"""The local engine's bookkeeping, over a library that a test steps by hand."""

import asyncio
import threading
from collections.abc import Iterator
from typing import cast

import pytest

from backend.local.engine import LocalEngine
from backend.local.runtime import Chunk, Runtime
from backend.local.settings import LocalSettings
from backend.sglang_http.engine import GenerationRequest, Prompt, Sampling
from backend.sglang_http.generation import FinishReason, Generation, Usage
from backend.sglang_http.refusals import EngineFailure, engine_broke


class SteppedRuntime:
    """Stands where the blocking library does. Each rid gets its chunks when the test says so."""

    def __init__(self) -> None:
        self._steps: dict[str, threading.Semaphore] = {}
        self.prompting = 0
        self.prompting_peak = 0
        self.asked: dict[str, int] = {}
        self.left: set[str] = set()
        self.broken: set[str] = set()

    def step(self, rid: str, count: int = 1) -> None:
        """Let one sequence have so many chunks."""
        self._semaphore(rid).release(count)

    def generate(self, request: GenerationRequest) -> Iterator[Chunk]:
        """Chunks of one token until the maximum."""
        rid, maximum = request.rid, request.sampling.max_tokens
        self.prompting += 1
        self.prompting_peak = max(self.prompting_peak, self.prompting)
        try:
            for number in range(1, maximum + 1):
                self.asked[rid] = number
                assert self._semaphore(rid).acquire(timeout=10)
                if rid in self.broken:
                    raise engine_broke()
                if number == 1:
                    self.prompting -= 1
                usage = Usage(3, maximum, None) if number == maximum else None
                yield Chunk("x", None, "length" if usage else None, usage)
        finally:
            self.left.add(rid)

    def _semaphore(self, rid: str) -> threading.Semaphore:
        return self._steps.setdefault(rid, threading.Semaphore(0))


@pytest.fixture
async def runtime() -> SteppedRuntime:
    """The library of the engine."""
    return SteppedRuntime()


@pytest.fixture
async def engine(runtime: SteppedRuntime) -> LocalEngine:
    """An engine with two places and one place in the queue."""
    made = LocalEngine(LocalSettings(max_running_requests=2, max_queued_requests=1))
    made._runtime = cast("Runtime", runtime)
    made._loop = asyncio.get_running_loop()
    made.ready = True
    return made


def request(rid: str, tokens: int = 3) -> GenerationRequest:
    """A request of three prompt tokens."""
    return GenerationRequest(rid, Prompt("p", (1, 2, 3)), Sampling(tokens), stream=True)


async def ended(generation: Generation) -> tuple[str, FinishReason, int]:
    """Text, reason and completion tokens of a sequence, read to its end."""
    text = ""
    while True:
        delta = await asyncio.wait_for(generation.take(), 10)
        text += delta.text
        if delta.finish is not None:
            return text, delta.finish.reason, delta.finish.usage.completion_tokens


async def idle(engine: LocalEngine) -> None:
    """Wait until nothing runs."""
    async with asyncio.timeout(10):
        while engine.load().running:  # noqa: ASYNC110 - the engine has no event for it
            await asyncio.sleep(0.001)


async def test_one_prompt_step_at_a_time(engine: LocalEngine, runtime: SteppedRuntime) -> None:
    """The second prompt waits for the first one's first chunk; then they decode side by side."""
    first, second = engine.submit(request("a")), engine.submit(request("b"))
    assert (engine.load().running, engine.load().waiting) == (1, 1)
    runtime.step("b", 3)
    runtime.step("a")
    assert (await first.take()).text == "x"
    assert await ended(second) == ("xxx", FinishReason.LENGTH, 3)
    runtime.step("a", 2)
    assert await ended(first) == ("xx", FinishReason.LENGTH, 3)
    assert runtime.prompting_peak == 1
    await idle(engine)
    page = engine.ledger.page(0)
    assert [(entry.rid, entry.running_at_start) for entry in page.entries] == [("b", 2), ("a", 1)]


async def test_places_and_queue(engine: LocalEngine, runtime: SteppedRuntime) -> None:
    """Beyond the places one waits, beyond the queue one is refused, and a place is passed on."""
    running = [engine.submit(request("a"))]
    runtime.step("a")
    await running[0].take()
    running.append(engine.submit(request("b")))
    runtime.step("b")
    await running[1].take()
    waiting = engine.submit(request("c"))
    with pytest.raises(EngineFailure, match="queue is full"):
        await engine.submit(request("d")).take()
    assert (engine.load().running, engine.load().waiting) == (2, 1)
    runtime.step("c", 3)
    runtime.step("a", 2)
    assert (await ended(waiting))[1] is FinishReason.LENGTH
    runtime.step("b", 2)
    await idle(engine)
    assert engine.ledger.running_peak == 2


async def test_abort_counts_the_chunk_under_way(
    engine: LocalEngine, runtime: SteppedRuntime
) -> None:
    """An aborted sequence ends with the chunk that was being computed, counted."""
    generation = engine.submit(request("a", 50))
    runtime.step("a")
    await generation.take()
    async with asyncio.timeout(10):
        while runtime.asked["a"] < 2:  # noqa: ASYNC110 - it is set in a thread
            await asyncio.sleep(0.001)
    engine.abort("a")
    runtime.step("a")
    assert await ended(generation) == ("x", FinishReason.ABORT, 2)
    await idle(engine)
    assert runtime.left == {"a"}
    assert engine.ledger.page(0).entries[0].completion_tokens == 2


async def test_abort_in_the_prompt_step(engine: LocalEngine, runtime: SteppedRuntime) -> None:
    """There the stream ends without waiting, but the place is held until the step is over."""
    generation, queued = engine.submit(request("a", 50)), engine.submit(request("b"))
    engine.abort("b")
    assert await ended(queued) == ("", FinishReason.ABORT, 0)
    engine.abort("a")
    assert await ended(generation) == ("", FinishReason.ABORT, 0)
    assert engine.load().running == 1
    runtime.step("a")
    await idle(engine)
    entries = engine.ledger.page(0).entries
    assert [(e.rid, e.prompt_tokens, e.completion_tokens) for e in entries] == [
        ("b", 0, 0),
        ("a", 3, 0),
    ]


async def test_broken_step(engine: LocalEngine, runtime: SteppedRuntime) -> None:
    """Where the library fails, the request fails, and the next one gets its place."""
    runtime.broken.add("a")
    broken, queued = engine.submit(request("a")), engine.submit(request("b", 1))
    runtime.step("a")
    runtime.step("b")
    with pytest.raises(EngineFailure):
        await broken.take()
    assert await ended(queued) == ("x", FinishReason.LENGTH, 1)
    await idle(engine)
    assert engine.ledger.page(0).entries[0].finish_reason == "error"
