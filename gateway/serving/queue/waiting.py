"""From asking for a place to having one, and to its end: one request's way through the store.

Only the coroutine that serves the request takes its steps; messages and renewals merely tell it
what they heard (`Entry.tell`). Whatever ends the wait (the client, the deadline, a cancellation at
any await) ends in `depart`, once, and that goes on by itself until the store has heard it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from gateway.domain.queue.tickets import (
    TAKEN_BACK_WAIT_MS,
    Answer,
    Band,
    Granted,
    NoWorker,
    Parked,
    QueueFull,
    TakenBack,
    TooLong,
    Unknown,
)
from gateway.errors import WeirError
from gateway.serving.ports import LedgerUnavailable
from gateway.serving.queue import refusals, sight
from gateway.serving.queue.book import Book
from gateway.serving.queue.entry import Entry, News, State
from gateway.serving.queue.restoring import Restoring
from gateway.serving.queue.store import QueueStore
from gateway.telemetry import queue as metrics

READY_S = 0.1
"""A request is decided within this time; so long it waits for a store that is just coming back."""
_ANY_NUMBER = 2**31
OWED_MS = 60_000
"""A leave that the store did not hear is told again for so long; by then it has lapsed."""


@dataclass(frozen=True)
class Owed:
    """A leave that the store has not heard."""

    pool: str
    request_id: str
    actual_cost: int | None
    until_us: int


class Waiting:
    """The steps of all requests of one gateway."""

    def __init__(self, store: QueueStore, book: Book, restoring: Restoring) -> None:
        self.store = store
        self.book = book
        self.restoring = restoring
        self.owed: list[Owed] = []
        self._tasks: set[asyncio.Task[None]] = set()

    async def get_place(self, entry: Entry) -> None:
        """Return once it has a place or, where the store is away, may run without: what the ledger
        lets run then needs none. Batch waits for the store. Raises what `Places.place` does."""
        answer: Answer | None = None
        if await self.store.until_ready(READY_S):
            with suppress(LedgerUnavailable):
                answer = await self.enter(entry)
        if isinstance(answer, Granted) and entry.entered == 1:
            if not await self._hold(entry, answer.worker, "reply"):
                await self._until_held(entry, await self._again(entry))
        elif answer is None and entry.asked.band is Band.INTERACTIVE:
            if self.store.is_open:
                raise refusals.store_away()
            await self._hold(entry, None, "none")
        elif answer is None and not entry.asked.max_queued:
            raise refusals.store_away()
        else:
            await self._until_held(entry, answer)

    async def enter(self, entry: Entry) -> Answer:
        """Take it in, for what is left of its wait. A store that knows no worker, since it came
        back empty or another gateway lost it, is told of those that are seen here.

        Raises LedgerUnavailable, and WorkersGone where none is.
        """
        answer = await self._enter(entry)
        if isinstance(answer, NoWorker):
            await self.restoring.tell(entry.asked.pool)
            answer = await self._enter(entry)
        if isinstance(answer, NoWorker):
            entry.in_store = False
            raise refusals.WorkersGone(entry.asked.pool)
        return answer

    async def _enter(self, entry: Entry) -> Answer:
        entry.in_store = True
        entry.entered += 1
        asked, queue = entry.asked, self.store.queue
        max_queued = _ANY_NUMBER if entry.was_let_wait else asked.max_queued
        is_new = asked.is_new and not entry.was_let_wait

        def call() -> Coroutine[Any, Any, Answer]:
            return queue.enter(asked.pool, entry.wish(), max_queued=max_queued, is_new=is_new)

        return await entry.step(lambda: self.store.ask(call))

    async def give_back(self, entry: Entry) -> None:
        """The place that was taken back is free; return once it has another. Raises what
        `Places.place` does."""
        pool, request_id, queue = entry.asked.pool, entry.asked.id, self.store.queue
        entry.wait_again()
        entry.was_taken_back(TAKEN_BACK_WAIT_MS)
        self.book.move(entry, State.WAITING)
        metrics.TAKEN_BACK.labels(result="given_back").inc()
        answer = await self._step(entry, lambda: queue.give_back(pool, request_id))
        await self._until_held(entry, answer)

    async def park(self, entry: Entry) -> None:
        """Its place is free, and it waits for its tenant's limits; return once it has one again.
        Raises its refusal at its deadline, and what `Places.place` does.

        One that was let wait before goes on, however many have come while it had a place: their
        tenant has no more beyond `max_queued` than had a place while its limits were asked.
        """
        max_queued = _ANY_NUMBER if entry.was_let_wait else entry.asked.max_queued
        entry.wait_again()
        self.book.move(entry, State.PARKED)
        pool, request_id, queue = entry.asked.pool, entry.asked.id, self.store.queue

        def call() -> Coroutine[Any, Any, Answer]:
            return queue.park(pool, request_id, max_queued=max_queued)

        answer = await self._step(entry, call)
        await self._until_held(entry, answer)

    def depart(self, entry: Entry, actual_cost: int | None) -> None:
        """It ends, at this cost in weighted tokens; None: it never ran. The first time counts."""
        if entry.state is State.GONE:
            return
        self.book.move(entry, State.GONE)
        if entry.in_store:
            entry.departure = self.keep(self._leave(entry, actual_cost))

    def keep(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """A task that goes on by itself."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def until_told(self) -> None:
        """Return when the store has heard of all that ended, or did not answer."""
        while self._tasks:
            await asyncio.wait(set(self._tasks))

    async def send_owed(self, now_us: int) -> None:
        """Tell again what the store has not heard. Raises LedgerUnavailable."""
        self.owed = [leave for leave in self.owed if leave.until_us > now_us]
        while self.owed:
            leave = self.owed[0]
            await self._tell_leave(leave)
            self.owed.remove(leave)

    async def _until_held(self, entry: Entry, answer: Answer | None) -> None:
        """Take the step that each answer asks for, until a place is had. None: nothing is known."""
        pool, request_id, queue = entry.asked.pool, entry.asked.id, self.store.queue
        told_by = "reply"
        while True:
            entry.check()
            match answer:
                case Granted():
                    answer = await self._step(entry, lambda: queue.take_up(pool, request_id))
                    if isinstance(answer, Granted):
                        if await self._hold(entry, answer.worker, told_by):
                            return
                        answer = await self._again(entry)
                case TakenBack():
                    entry.was_taken_back(TAKEN_BACK_WAIT_MS)
                    answer = await self._step(entry, lambda: queue.give_back(pool, request_id))
                    metrics.TAKEN_BACK.labels(result="given_back").inc()
                case Unknown():
                    if not entry.left_ms:
                        raise self._over(entry)
                    metrics.REENTERED.labels(what="ticket").inc()
                    answer = await self._again(entry)
                case QueueFull() | TooLong():
                    entry.in_store = False
                    raise self._refusal(entry, answer)
                case _:
                    state = State.PARKED if isinstance(answer, Parked) else State.WAITING
                    if answer is not None or entry.state in (State.ASKING, State.ABSENT):
                        self.book.move(entry, state)
                    if answer is not None:
                        entry.tell(answer, told_by)
                    news = await self._news(entry)
                    answer, told_by = news.answer, news.told_by

    async def _news(self, entry: Entry) -> News:
        try:
            return await entry.news()
        except TimeoutError:
            raise self._over(entry) from None

    async def _step(self, entry: Entry, call: Callable[[], Awaitable[Answer]]) -> Answer | None:
        """The answer; None where the store does not give one: a renewal will tell."""
        try:
            return await entry.step(lambda: self.store.ask(call))
        except LedgerUnavailable:
            return None

    async def _again(self, entry: Entry) -> Answer | None:
        if not self.store.ready.is_set():
            return None
        with suppress(LedgerUnavailable):
            return await self.enter(entry)
        return None

    async def _hold(self, entry: Entry, worker: str | None, told_by: str) -> bool:
        """False where this gateway sees no worker that could take it: then its place is free, and
        a worker has been seen since. Raises what it was stopped with."""
        entry.check()
        entry.worker = worker
        self.book.move(entry, State.HELD)
        workers = self.restoring.workers
        is_usable = worker is None or await sight.may_use(entry, workers, worker)
        entry.waited_us += entry.clock.monotonic_us() - entry.wait_since_us
        if not is_usable:
            await self._be_absent(entry)
            return False
        label = entry.asked.band.name.lower()
        metrics.WAIT_SECONDS.labels(request_class=label).observe(entry.waited_us / 1e6)
        metrics.GRANTS.labels(request_class=label, told_by=told_by).inc()
        return True

    async def _be_absent(self, entry: Entry) -> None:
        pool, request_id, queue = entry.asked.pool, entry.asked.id, self.store.queue

        def call() -> Coroutine[Any, Any, None]:
            return queue.leave(pool, request_id, actual_cost=None)

        entry.wait_again()
        self.book.move(entry, State.ABSENT)
        with suppress(LedgerUnavailable):
            await entry.step(lambda: self.store.ask(call))
        await sight.until_any(entry, self.restoring.workers)

    def _over(self, entry: Entry) -> WeirError:
        if entry.state is State.PARKED and entry.refused is not None:
            since_us = entry.clock.monotonic_us() - entry.refused_us
            return refusals.aged(entry.refused, since_us // 1000)
        if not self.store.ready.is_set():
            return refusals.store_away()
        if not self.restoring.workers.has_any(entry.asked.pool):
            return refusals.WorkersGone(entry.asked.pool)
        waited_us = entry.clock.monotonic_us() - entry.since_us
        predicted = None if entry.standing is None else entry.standing.wait_ms
        return refusals.wait_over(waited_us // 1000, predicted)

    def _refusal(self, entry: Entry, answer: QueueFull | TooLong) -> WeirError:
        asked = entry.asked
        if isinstance(answer, TooLong):
            if not entry.left_ms:
                return self._over(entry)
            return refusals.too_long(answer.wait_ms, entry.left_ms)
        if not asked.max_queued:
            return refusals.no_place_now()
        first_ms = self.book.first_wait_ms(asked.pool, asked.tenant)
        return refusals.queue_full(answer.waiting, asked.max_queued, first_ms)

    async def _leave(self, entry: Entry, actual_cost: int | None) -> None:
        await entry.quiet()
        until_us = entry.clock.monotonic_us() + OWED_MS * 1000
        leave = Owed(entry.asked.pool, entry.asked.id, actual_cost, until_us)
        try:
            await self._tell_leave(leave)
        except LedgerUnavailable:
            self.owed.append(leave)

    async def _tell_leave(self, leave: Owed) -> None:
        pool, request_id, cost = leave.pool, leave.request_id, leave.actual_cost
        queue = self.store.queue
        await self.store.ask(lambda: queue.leave(pool, request_id, actual_cost=cost))
