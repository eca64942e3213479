"""One request in the waiting room: what it asked, how far it is, and what it was told last."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeVar

from gateway.domain.queue.tickets import Answer, Parked, Queued, StillQueued
from gateway.errors import LimitReached
from gateway.serving.ports import Clock
from gateway.serving.queue.asked import PlaceAsked
from gateway.serving.queue_ports import Run, Wish
from gateway.telemetry.tracing import Attributes

Reply = TypeVar("Reply")


class State(Enum):
    """How far it is, as this gateway sees it."""

    ASKING = "asking"
    """The store has not answered yet."""
    WAITING = "waiting"
    PARKED = "parked"
    """It waits for its tenant's limits, and for no place."""
    HELD = "held"
    """It has a place, or runs without one since the store was away."""
    ABSENT = "absent"
    """It waits here until a worker of its pool is seen, and is in no queue."""
    GONE = "gone"


@dataclass(frozen=True)
class News:
    """What it was told, and by what: `reply`, `message` or `renewal`."""

    answer: Answer
    told_by: str


@dataclass(eq=False)
class Entry:
    """`since_us` and `deadline_us` are on the clock that never jumps. Only `Book` sets `state`."""

    asked: PlaceAsked
    clock: Clock
    since_us: int
    deadline_us: int
    state: State = State.ASKING
    in_store: bool = False
    """Whether the store may know it."""
    was_let_wait: bool = False
    """It is not counted again against `max_queued` where the store forgot it."""
    entered: int = 0
    """How often the store was asked to take it in."""
    worker: str | None = None
    began: bool = False
    surrendered: bool = False
    """It has been decided that its place goes back; `began` or this, whichever comes first."""
    untold: bool = False
    """The store does not know yet that it began."""
    times_taken_back: int = 0
    taken_back: asyncio.Event = field(default_factory=asyncio.Event)
    on_taken_back: list[Callable[[], None]] = field(default_factory=list)
    standing: Queued | None = None
    refused: LimitReached | None = None
    """What its tenant's limits said when it was parked."""
    refused_us: int = 0
    stopped: Exception | None = None
    waited_us: int = 0
    """In all, until it last had a place."""
    wait_since_us: int = 0
    steps: int = 0
    """At the store, so far."""
    departure: asyncio.Task[None] | None = None
    _in_flight: "asyncio.Future[Any] | None" = None
    _news: News | None = None
    _woken: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.wait_since_us = self.since_us

    @property
    def is_waiting(self) -> bool:
        """Whether it waits for a place or for its tenant's limits."""
        return self.state in (State.WAITING, State.PARKED)

    @property
    def is_busy(self) -> bool:
        """Whether a step of it is at the store."""
        return self._in_flight is not None and not self._in_flight.done()

    @property
    def left_ms(self) -> int:
        """Until its deadline."""
        return max(0, (self.deadline_us - self.clock.monotonic_us()) // 1000)

    @property
    def order(self) -> tuple[int, str]:
        """Among others of its tenant and band: earliest deadline first."""
        return self.deadline_us, self.asked.id

    def wish(self) -> Wish:
        """As the store is asked now."""
        asked = self.asked
        so_far_ms = (self.clock.monotonic_us() - self.since_us) // 1000
        return Wish(
            id=asked.id,
            tenant=asked.tenant,
            band=asked.band,
            sequences=asked.sequences,
            need_tokens=asked.need_tokens,
            cost=asked.cost,
            weight=asked.weight,
            wait_ms=self.left_ms,
            promote_after_ms=max(0, asked.promote_after_ms - so_far_ms),
            waited_ms=so_far_ms,
            taken_back=self.times_taken_back,
            lot=asked.key,
        )

    def run(self) -> Run | None:
        """As a store that forgot it is told that it runs; None while it is on no worker."""
        return None if self.worker is None else Run(self.wish(), self.worker, self.began)

    async def step(self, call: Callable[[], Awaitable[Reply]]) -> Reply:
        """One step of it at the store, after the one before has ended. It goes on where who waits
        for it is cancelled: what a store may still do must be known before a ticket is let go."""
        await self.quiet()
        return await asyncio.shield(self.occupy(call()))

    def traced(self, name: str, wait: Awaitable[Reply]) -> Awaitable[Reply]:
        """A wait of it, as a step of its request's trace."""
        return self.asked.trace.of(name, wait, self._waited)

    def _waited(self) -> Attributes:
        said: dict[str, str | int] = {"weir.queue_ms": self.waited_us // 1000}
        return said if self.worker is None else said | {"weir.worker.id": self.worker}

    def occupy(self, work: Awaitable[Reply]) -> "asyncio.Future[Reply]":
        """Steps wait until this has ended."""
        future = asyncio.ensure_future(work)
        future.add_done_callback(_retrieve)
        self._in_flight = future
        self.steps += 1
        return future

    async def quiet(self) -> None:
        """Return when no step of it is at the store."""
        while self._in_flight is not None and not self._in_flight.done():
            await asyncio.wait({self._in_flight})

    def tell(self, answer: Answer, told_by: str) -> None:
        """It waits and hears this."""
        if isinstance(answer, Queued | StillQueued | Parked):
            if not isinstance(answer, StillQueued):
                self.standing = answer if isinstance(answer, Queued) else None
            self.was_let_wait = True
            return
        self._news = News(answer, told_by)
        self._woken.set()

    async def news(self) -> News:
        """What it is told next. Raises what it was stopped with, TimeoutError at its deadline."""
        while True:
            self.check()
            if self._news is not None:
                news, self._news = self._news, None
                return news
            self._woken.clear()
            async with asyncio.timeout(max(0, self.deadline_us - self.clock.monotonic_us()) / 1e6):
                await self._woken.wait()

    async def pause(self, seconds: float) -> None:
        """For so long, or until it is told something. Raises what it was stopped with."""
        self.check()
        self._woken.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        self.check()

    def stop(self, error: Exception) -> None:
        """It does not wait any more. The first stop counts."""
        if self.stopped is None:
            self.stopped = error
            self._woken.set()

    def check(self) -> None:
        """Raise what it was stopped with."""
        if self.stopped is not None:
            raise self.stopped

    def take_back(self) -> None:
        """Its place is asked back, before its first token. Heard once."""
        if self.state is State.HELD and not self.taken_back.is_set():
            self.taken_back.set()
            for callback in list(self.on_taken_back):
                callback()

    def was_taken_back(self, wait_ms: int) -> None:
        """Its place goes back, which is our doing: it may wait for at least so long again."""
        self.times_taken_back += 1
        self.deadline_us = max(self.deadline_us, self.clock.monotonic_us() + wait_ms * 1000)

    def wait_again(self) -> None:
        """It waits from now on, and has no place."""
        self.worker, self.surrendered, self.was_let_wait = None, False, True
        self.taken_back.clear()
        self.on_taken_back.clear()
        self.wait_since_us = self.clock.monotonic_us()
        self._news = None


def _retrieve(future: "asyncio.Future[Any]") -> None:
    """A failure that nobody waits for any more is no news."""
    if not future.cancelled():
        future.exception()
