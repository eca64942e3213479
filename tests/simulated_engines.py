"""Simulated engines for tests, on a fast clock and without HTTP."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

from backend.sglang_http.engine import GenerationRequest, Prompt, Sampling
from backend.sglang_http.faults import Fault
from backend.sglang_http.generation import Delta, Generation
from backend.sglang_http.refusals import EngineFailure
from backend.simulated.engine import SimulatedEngine
from backend.simulated.flags import SchedulerFlags
from backend.simulated.settings import SimulatedSettings

SPEED = 50.0


class Engines:
    """Started engines, all stopped at the end."""

    def __init__(self) -> None:
        self.started: list[SimulatedEngine] = []

    async def start(self, *, speed: float = SPEED, **flags: Any) -> SimulatedEngine:
        """One with these flags."""
        settings = SimulatedSettings(flags=SchedulerFlags(**flags), speed=speed)
        engine = SimulatedEngine(settings)
        self.started.append(engine)
        await engine.start()
        return engine


@contextlib.asynccontextmanager
async def starting_engines() -> AsyncIterator[Engines]:
    """What starts engines."""
    made = Engines()
    yield made
    for engine in made.started:
        await engine.stop()


def request(rid: str, prompt: int = 10, fault: Fault | None = None, **sampling: Any) -> Any:
    """A request of so many prompt tokens."""
    tokens = tuple(range(1, prompt + 1))
    priority = sampling.pop("priority", None)
    chosen = Sampling(**{"max_tokens": 5, "temperature": 0.0, **sampling})
    return GenerationRequest(
        rid, Prompt("", tokens), chosen, stream=True, priority=priority, fault=fault
    )


async def read(generation: Generation) -> tuple[str, Delta]:
    """Its text, and what it ended with."""
    text = ""
    while True:
        delta = await asyncio.wait_for(generation.take(), 20)
        text += delta.text
        if delta.finish is not None:
            return text, delta


async def outcome(generation: Generation) -> str | int:
    """Its finish reason, or the status of its failure."""
    try:
        _, delta = await read(generation)
    except EngineFailure as failure:
        return failure.status
    assert delta.finish is not None
    return delta.finish.reason.value


async def until(holds: Callable[[], bool]) -> None:
    """Wait for it."""
    async with asyncio.timeout(20):
        while not holds():  # noqa: ASYNC110 # the engine tells nobody
            await asyncio.sleep(0.002)


async def started(generation: Generation, tokens: int = 1) -> None:
    """Wait until it has so many tokens."""
    await until(lambda: generation.completion_tokens >= tokens)
