"""The streams of one request: one a choice, each read from the worker it was sent to.

Each is sent to the worker that the request has its place on. Before its first event a stream may be
tried once more elsewhere, and then at a hosted provider where the tenant allows it, under the same
lease; after it a failure is final (DESIGN 6). Until the first token of any choice batch may have
its place taken back: then all its streams are aborted, and begin anew on its next place.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress

from gateway.domain import routing
from gateway.domain.hosted import PROVIDER_PREFIX, HostedTarget
from gateway.domain.pools import model_of
from gateway.domain.queue.tickets import Band
from gateway.domain.tenant import Worker
from gateway.domain.worker import WorkerView
from gateway.errors import Overloaded, WeirError, WorkerFailed, WorkerTimeout, WorkerUnreachable
from gateway.serving.attempt import Attempt, Upstream
from gateway.serving.choice import Choice
from gateway.serving.hosted import HostedRoute
from gateway.serving.live import LiveRequest
from gateway.serving.pool_workers import workers_of
from gateway.serving.ports import ClientGone, EngineRefused
from gateway.serving.queue.held import HeldPlace
from gateway.telemetry.trace_names import ROUTE
from gateway.telemetry.tracing import NO_TRACE, RequestTrace
from gateway.wire.refusal import FULL
from gateway.wire.upstream import Event

ATTEMPTS_MAX = 2
"""Of a choice on workers; beside them at most as many at hosted providers."""


class ChoiceStreams:
    """Opens and reads the streams of one request's choices."""

    def __init__(
        self,
        upstream: Upstream,
        live: LiveRequest,
        path: str,
        choices: list[Choice],
        route: HostedRoute,
        *,
        pool: str,
        place: HeldPlace | None,
        max_tokens: int,
        check_caller: Callable[[], Awaitable[object]],
        trace: RequestTrace = NO_TRACE,
    ) -> None:
        """Only workers of `pool` are asked. `max_tokens` is what each choice's engine is told.
        Without a place no worker has room, or none is there: only a hosted provider is asked.
        `check_caller` raises what a caller is told that may not ask any more: what was revoked
        while a request waited again holds."""
        self._upstream = upstream
        self._live = live
        self._pool = pool
        self._path = path
        self._choices = choices
        self._route = route
        self._place = place
        self._max_tokens = max_tokens
        self._check_caller = check_caller
        self._trace = trace
        self._attempts = 0
        self.is_refused = False
        """Its place was taken back, and it got no other or may not use it: what it was told is no
        worker's fault."""

    async def events(self) -> AsyncIterator[tuple[Choice, bytes, Event]]:
        """Every event of every choice, as it comes. Raises WorkerFailed, EngineRefused, Overloaded,
        and what `HeldPlace.wait_again` and `check_caller` do; then the other streams have been
        aborted and read to their end."""
        place = self._place
        if place is None:
            async for item in self._streams():
                yield item
            return
        while True:
            place.on_taken_back(self._give_way)
            try:
                async for item in self._from_its_first_token(place):
                    yield item
            except (WorkerFailed, WorkerTimeout, EngineRefused, Overloaded):
                if not place.surrendered:
                    raise
            if not place.surrendered:
                return
            for choice in self._choices:
                choice.begin_anew()
            if self._live.stopped is not None:
                return
            try:
                with suppress(ClientGone):
                    await place.wait_again()
                if self._live.stopped is not None:
                    return
                await self._check_caller()
            except WeirError:
                self.is_refused = True
                place.release(None)
                raise
            self._live.go_on()

    async def _from_its_first_token(
        self, place: HeldPlace
    ) -> AsyncIterator[tuple[Choice, bytes, Event]]:
        """The events of a place that is kept. While batch may still give it back nothing of it
        reaches the client: what it would be sent then, it would be sent again."""
        held_back: list[tuple[Choice, bytes, Event]] = []
        began = place.band is not Band.BATCH
        async for choice, data, event in self._streams():
            if place.surrendered:
                continue
            if event.has_content or event.finish_reason is not None:
                if not place.began():
                    continue
                began = True
            held_back.append((choice, data, event))
            if began:
                for item in held_back:
                    yield item
                held_back.clear()
        if not place.surrendered:
            for item in held_back:
                yield item

    def _give_way(self) -> None:
        """An interactive request waits for the place."""
        if self._place is not None and self._place.surrender():
            self._live.give_way()

    async def _streams(self) -> AsyncIterator[tuple[Choice, bytes, Event]]:
        if len(self._choices) == 1:
            choice = self._choices[0]
            async for data, event in self._read(choice):
                yield choice, data, event
            return
        async for item in self._merge():
            yield item

    async def _merge(self) -> AsyncIterator[tuple[Choice, bytes, Event]]:
        queue: asyncio.Queue[tuple[Choice, bytes, Event] | None] = asyncio.Queue(
            maxsize=4 * len(self._choices)
        )
        failures: list[Exception] = []
        open_pumps = len(self._choices)

        async def pump(choice: Choice) -> None:
            nonlocal open_pumps
            try:
                async for data, event in self._read(choice):
                    await queue.put((choice, data, event))
            except (WorkerFailed, WorkerTimeout, EngineRefused, Overloaded) as error:
                failures.append(error)
                self._live.abort_streams()
            finally:
                open_pumps -= 1
                if open_pumps == 0:
                    await queue.put(None)

        pumps: list[asyncio.Task[None]] = []
        try:
            for choice in self._choices:
                pumps.append(asyncio.create_task(pump(choice)))
                # One body is made at a time: of megabytes, all of them would stop everybody else.
                await asyncio.sleep(0)
            while (item := await queue.get()) is not None:
                yield item
        finally:
            await asyncio.gather(*pumps)
        if failures:
            raise failures[0]

    async def _read(self, choice: Choice) -> AsyncIterator[tuple[bytes, Event]]:
        tried: list[str] = []
        worker = self._choose(choice, tried, None)
        if worker is None:
            raise self._no_worker()
        while True:
            tried.append(worker.id)
            started = False
            try:
                async for data, event in self._attempt(choice, worker):
                    started = True
                    yield data, event
            except (WorkerFailed, WorkerTimeout, EngineRefused) as error:
                following = None if started else self._choose(choice, tried, error)
                if following is not None:
                    worker = following
                elif not started and self._says_nothing(worker, error):
                    raise self._no_worker() from None
                else:
                    raise
            else:
                return

    def _attempt(self, choice: Choice, worker: Worker) -> AsyncIterator[tuple[bytes, Event]]:
        if isinstance(worker, HostedTarget) and not self._route.begin(worker):
            raise self._no_worker()
        self._attempts += 1
        return Attempt(
            upstream=self._upstream,
            live=self._live,
            route=self._route,
            choice=choice,
            worker=worker,
            path=self._path,
            sequence=self._attempts,
            max_tokens=self._max_tokens,
            band=Band.INTERACTIVE if self._place is None else self._place.band,
            trace=self._trace,
        ).events()

    def _choose(self, choice: Choice, tried: list[str], error: Exception | None) -> Worker | None:
        with self._trace.leaf(ROUTE) as step:
            worker = self._following(choice, tried, error)
            step.tell(
                lambda: (
                    {"weir.route.tried": len(tried)}
                    | ({} if worker is None else {"weir.worker.id": worker.id})
                )
            )
            return worker

    def _following(
        self, choice: Choice, tried: list[str], error: Exception | None
    ) -> Worker | None:
        """Where the request may fare better than it did: workers first, then hosted providers. What
        a worker refused, or had no room for, goes to none: the fleet serves."""
        if self._live.aborting:
            return None
        hosted = sum(worker_id.startswith(PROVIDER_PREFIX) for worker_id in tried)
        refused = isinstance(error, EngineRefused)
        if isinstance(error, EngineRefused) and not hosted and error.status not in FULL:
            return None
        if self._place is not None and not hosted and len(tried) < ATTEMPTS_MAX:
            view = self._placed(self._place, choice, tried)
            if view is not None:
                return view.worker
        if hosted >= ATTEMPTS_MAX or (refused and not hosted):
            return None
        return self._route.target(excluded=tried)

    def _placed(self, place: HeldPlace, choice: Choice, tried: list[str]) -> WorkerView | None:
        """The worker of its place, else another that takes it, full or not; the place follows."""
        views, name = self._views(), place.worker
        if name is not None and name not in tried:
            own = [view for view in views if view.worker.id == name]
            if routing.eligible(own, need=choice.need):
                return own[0]
        view = routing.pick(views, excluded=tried, need=choice.need)
        if view is not None:
            place.runs_on(view.worker.id)
        return view

    def _says_nothing(self, worker: Worker, error: Exception) -> bool:
        """Whether a failure only says that no worker is there: none could be reached, or what a
        provider will not take, which the fleet may."""
        if self._live.aborting:
            return False
        if isinstance(worker, HostedTarget) and isinstance(error, EngineRefused):
            return error.status not in FULL
        return isinstance(error, WorkerUnreachable) and not routing.eligible(self._views())

    def _no_worker(self) -> Overloaded:
        return Overloaded(f"no worker of {model_of(self._pool)} is ready", code="no_worker")

    def _views(self) -> Sequence[WorkerView]:
        return workers_of(self._upstream.fleet, self._pool)
