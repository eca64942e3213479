"""The sequences of one HTTP request, from their submission to their end."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable

from backend.sglang_http.engine import Engine
from backend.sglang_http.faults import FaultedStream
from backend.sglang_http.generation import Delta, DirectReader, Generation, Usage
from backend.sglang_http.planning import Plan

Write = Callable[[bytes], Awaitable[None]]


class RunningRequest:
    """Submits a plan's sequences and reads what they generate."""

    def __init__(self, plan: Plan, engine: Engine) -> None:
        """Submits all sequences. Raises Refused for a rid that is alive already."""
        self.plan = plan
        self.engine = engine
        self.faulted = FaultedStream(plan.sequences[0].fault)
        self.generations: list[Generation] = []
        try:
            for request in plan.sequences:
                self.generations.append(engine.submit(request))
        except BaseException:
            self.abandon()
            raise

    @property
    def rid(self) -> str:
        """The answer's id: the first sequence's."""
        return self.generations[0].rid

    def abandon(self) -> None:
        """Nobody reads any more: stop whatever still runs. By rid, and so by prefix: a client that
        leaves takes along every request whose rid begins with its own, as in SGLang."""
        for generation in self.generations:
            if not generation.ended:
                self.engine.abort(generation.rid)

    def counted(self) -> list[Usage]:
        """Usage of each sequence that has broken off; zero where it never started."""
        return [
            Usage(0, 0, 0) if each.course.started_ns is None else each.usage
            for each in self.generations
        ]

    async def deltas(self, direct: DirectReader | None = None) -> AsyncGenerator[tuple[int, Delta]]:
        """What any sequence generates, as it comes, until all have ended; without what `direct`
        took of the only one after its first text."""
        if len(self.generations) == 1:
            generation, reader = self.generations[0], None
            while True:
                delta = await generation.take(reader)
                yield 0, delta
                if delta.finish is not None:
                    return
                reader = direct
        takers = {
            asyncio.ensure_future(generation.take()): index
            for index, generation in enumerate(self.generations)
        }
        try:
            while takers:
                done, _ = await asyncio.wait(takers, return_when=asyncio.FIRST_COMPLETED)
                for taker in done:
                    index = takers.pop(taker)
                    delta = taker.result()
                    if delta.finish is None:
                        again = asyncio.ensure_future(self.generations[index].take())
                        takers[again] = index
                    yield index, delta
        finally:
            for taker in takers:
                taker.cancel()
