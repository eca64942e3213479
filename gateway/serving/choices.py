"""The streams of one request: one a choice, each read from the worker it was sent to.

Before its first event a stream may be tried once more elsewhere, and then at a hosted provider
where the tenant allows it, under the same lease; after it a failure is final (DESIGN 6).
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from billing.domain.usage_record import Outcome
from gateway.domain import routing
from gateway.domain.hosted import PROVIDER_PREFIX, HostedTarget
from gateway.domain.tenant import EngineKind, Worker
from gateway.domain.worker import WorkerView
from gateway.errors import HostedSendRefused, Overloaded, WorkerFailed, WorkerUnreachable
from gateway.serving.choice import Choice
from gateway.serving.hosted import HostedFallback, HostedRoute
from gateway.serving.live import LiveRequest, Patience
from gateway.serving.ports import Clock, Engine, EngineRefused, Fleet, UpstreamStream
from gateway.telemetry import metrics
from gateway.wire.chunk_id import chunk_id
from gateway.wire.upstream import Event, read_event

ATTEMPTS_MAX = 2
"""Of a choice on workers; beside them at most as many at hosted providers."""
FULL = frozenset({429, 503})
"""The engine has no room now; another may."""
REFUSALS = FULL | {400, 413, 422}
"""Statuses that say something of the request. Any other (a key, a path, a crash) says that the
worker fails."""


@dataclass(frozen=True)
class Upstream:
    """What opening and reading streams needs."""

    engine: Engine
    fleet: Fleet
    clock: Clock
    hosted: HostedFallback


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
        max_tokens: int,
    ) -> None:
        """`max_tokens` is what each choice's engine is told."""
        self._upstream = upstream
        self._live = live
        self._model = route.request.model
        self._path = path
        self._choices = choices
        self._route = route
        self._max_tokens = max_tokens
        self._attempts = 0

    async def events(self) -> AsyncIterator[tuple[Choice, bytes, Event]]:
        """Every event of every choice, as it comes. Raises WorkerFailed, EngineRefused, Overloaded;
        then the other streams have been aborted and read to their end."""
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
            except (WorkerFailed, EngineRefused, Overloaded) as error:
                failures.append(error)
                self._live.abort_streams()
            finally:
                open_pumps -= 1
                if open_pumps == 0:
                    await queue.put(None)

        pumps = [asyncio.create_task(pump(choice)) for choice in self._choices]
        try:
            while (item := await queue.get()) is not None:
                yield item
        finally:
            await asyncio.gather(*pumps)
        if failures:
            raise failures[0]

    async def _read(self, choice: Choice) -> AsyncIterator[tuple[bytes, Event]]:
        tried: list[str] = []
        worker = self._following(choice, tried, None)
        if worker is None:
            raise self._no_worker()
        while True:
            tried.append(worker.id)
            started = False
            try:
                async for data, event in self._attempt(choice, worker):
                    started = True
                    yield data, event
            except (WorkerFailed, EngineRefused) as error:
                following = None if started else self._following(choice, tried, error)
                if following is not None:
                    worker = following
                elif isinstance(error, WorkerUnreachable) and self._none_left():
                    raise self._no_worker() from None
                else:
                    raise
            else:
                return

    def _following(
        self, choice: Choice, tried: list[str], error: Exception | None
    ) -> Worker | None:
        """Where the request may fare better than it did: workers first, then a hosted provider,
        but for what only a worker's queue had no room for."""
        full = isinstance(error, EngineRefused)
        if self._live.aborting or (isinstance(error, EngineRefused) and error.status not in FULL):
            return None
        hosted = sum(worker_id.startswith(PROVIDER_PREFIX) for worker_id in tried)
        if not hosted and len(tried) < ATTEMPTS_MAX:
            view = routing.pick(self._views(), excluded=tried, need=choice.need)
            if view is not None:
                return view.worker
        if hosted >= ATTEMPTS_MAX or (full and not hosted):
            return None
        return self._route.target(excluded=tried)

    def _none_left(self) -> bool:
        return not self._live.aborting and not routing.eligible(self._views())

    def _no_worker(self) -> Overloaded:
        return Overloaded(f"no worker of {self._model} is ready", code="no_worker")

    def _views(self) -> Sequence[WorkerView]:
        return self._upstream.fleet.views(self._model)

    async def _attempt(self, choice: Choice, worker: Worker) -> AsyncIterator[tuple[bytes, Event]]:
        clock, fleet = self._upstream.clock, self._upstream.fleet
        choice.begin_attempt(worker, clock.now_ms())
        self._attempts += 1
        sequence = self._attempts
        upstream_id, body = choice.body(worker, choice.attempts)
        hosted = self._hosted_attempt(worker)
        stream = self._upstream.engine.stream(
            worker,
            self._path,
            upstream_id,
            body,
            check_send=None if hosted is None else self._route.check_send,
        )
        outcome = Outcome.WORKER_FAILED
        fleet.opened(worker.id)
        self._live.attach(stream)
        try:
            async for data, event in self._events(choice, worker, stream):
                yield data, event
            if not choice.finished and self._live.stopped is None and not self._live.aborting:
                raise WorkerFailed("the worker ended the stream without finishing it")
            outcome = Outcome.COMPLETED if choice.finished else self._stop_outcome()
        except EngineRefused as error:
            if error.status not in REFUSALS:
                raise WorkerFailed(f"the worker answered {error.status}") from None
            outcome = Outcome.REFUSED
            if hosted is not None:
                hosted.refused = error.status not in FULL
            raise
        except HostedSendRefused:
            outcome = Outcome.REFUSED
            raise
        except WorkerFailed as error:
            if self._live.stopped is not None:
                outcome = self._stop_outcome()
            elif isinstance(error, WorkerUnreachable) and hosted is None:
                fleet.failed(worker.id)
            raise
        finally:
            await stream.aclose()
            self._live.detach(stream)
            fleet.closed(worker.id)
            choice.end_attempt(outcome, clock.now_ms(), sequence)
            if hosted is not None:
                hosted.end(outcome, answered=choice.finish_reason is not None or choice.began)

    async def _events(
        self, choice: Choice, worker: Worker, stream: UpstreamStream
    ) -> AsyncIterator[tuple[bytes, Event]]:
        """The stream's events, each noted. The end of an answer that is as long as it may be is
        held back until the engine has said how long that was: SGLang cuts a maximum down to what
        its KV pool holds, and calls that `length` too."""
        held: tuple[bytes, Event] | None = None
        async for data in stream:
            now_us = self._upstream.clock.monotonic_us()
            self._live.last_event_us = now_us
            self._live.saw_event = True
            event = read_event(data)
            choice.note(event, now_us)
            if choice.provider_request_id is None and isinstance(worker, HostedTarget):
                choice.provider_request_id = stream.provider_request_id or chunk_id(data)
            if event.finish_reason is not None:
                self._live.all_finished = all(c.finished for c in self._choices)
            if event.error is not None:
                if choice.deltas == 0:
                    raise EngineRefused(event.error.status, event.error.message)
                raise WorkerFailed("the worker reported an error")
            if held is not None:
                self._check_length(choice, worker)
                yield held
                held = None
            if event.finish_reason == "length" and worker.kind is EngineKind.SGLANG:
                held = (data, event)
            else:
                yield data, event
        if held is not None:
            yield held

    def _check_length(self, choice: Choice, worker: Worker) -> None:
        if choice.usage is None or choice.usage.output_tokens is None:
            return
        if choice.usage_is_final and choice.usage.output_tokens < self._max_tokens:
            choice.cut_short = True
            raise WorkerFailed("the engine had no room for the whole answer and cut it short")

    def _hosted_attempt(self, worker: Worker) -> "_HostedAttempt | None":
        if not isinstance(worker, HostedTarget):
            return None
        if not self._route.fallback.begin(worker):
            raise self._no_worker()
        self._live.last_event_us = self._upstream.clock.monotonic_us()
        self._live.patience = Patience(
            worker.first_event_timeout_ms * 1000, worker.stall_timeout_ms * 1000
        )
        return _HostedAttempt(self._route.fallback, worker)

    def _stop_outcome(self) -> Outcome:
        stopped = self._live.stopped
        return Outcome.WORKER_FAILED if stopped is None else stopped.outcome


@dataclass
class _HostedAttempt:
    """Tells the circuit breaker how an attempt ended."""

    fallback: HostedFallback
    target: HostedTarget
    refused: bool = False
    """It refused this request, as it would have on any day: it works."""

    def end(self, outcome: Outcome, *, answered: bool) -> None:
        """`answered` says whether any of an answer came."""
        metrics.HOSTED_ATTEMPTS.labels(provider=self.target.provider, outcome=outcome.value).inc()
        left = outcome in (Outcome.CLIENT_CANCELLED, Outcome.GATEWAY_LOST)
        if outcome is Outcome.COMPLETED or self.refused or (left and answered):
            self.fallback.succeeded(self.target)
        elif left:
            self.fallback.abandoned(self.target)
        else:
            self.fallback.failed(self.target)
