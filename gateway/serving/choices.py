"""The streams of one request: one a choice, each read from the worker it was sent to.

Before its first event a stream may be tried once more elsewhere, under the same lease; after it a
failure is final (DESIGN 6).
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field

from billing.domain.usage_record import Outcome, UsageAttempt
from gateway.domain import routing
from gateway.domain.engine_facts import Need
from gateway.domain.tenant import Worker
from gateway.domain.worker import WorkerView
from gateway.errors import Overloaded, WorkerFailed, WorkerUnreachable
from gateway.serving.live import LiveRequest
from gateway.serving.ports import Clock, Engine, EngineRefused, Fleet
from gateway.wire.upstream import Event, Usage, read_event

ATTEMPTS_MAX = 2
FULL = frozenset({429, 503})
"""The engine has no room now; another may."""
REFUSALS = FULL | {400, 413, 422}
"""Statuses that say something of the request. Any other (a key, a path, a crash) says that the
worker fails."""
FINISH_REASON_CHARACTERS_MAX = 64
ABORTED = "abort"
"""SGLang's finish reason of a stream that was aborted: never an answer."""


@dataclass
class Choice:
    """One choice of an answer, and all that was seen of its stream."""

    index: int
    prompt: int
    body: Callable[[Worker, int], tuple[str, bytes]]
    """The upstream id and body of an attempt on a worker."""
    need: Need | None = None
    """What a worker must be able to hold to take it."""
    worker: Worker | None = None
    attempts: int = 0
    ended_attempts: list[UsageAttempt] = field(default_factory=list)
    usage: Usage | None = None
    usage_is_final: bool = False
    deltas: int = 0
    finish_reason: str | None = None
    first_token_us: int | None = None
    last_token_us: int | None = None
    gap_us_max: int = 0
    attempt_started_ms: int = 0

    @property
    def finished(self) -> bool:
        """Whether the engine said how it ended, and it was not by an abort."""
        return self.finish_reason not in (None, ABORTED)

    @property
    def began(self) -> bool:
        """Whether the engine took up its prompt, as far as the stream shows."""
        return self.deltas > 0 or self.finished

    @property
    def output_tokens(self) -> int:
        """As the engine said or, where it did not, the deltas seen: a lower bound."""
        said = self.usage.output_tokens if self.usage is not None else None
        return self.deltas if said is None else said

    def note(self, event: Event, now_us: int) -> None:
        """Count an event."""
        if event.finish_reason is not None:
            self.finish_reason = event.finish_reason[:FINISH_REASON_CHARACTERS_MAX]
        if event.usage is not None:
            self.usage = event.usage
            self.usage_is_final = not event.has_choice or self.finish_reason is not None
        if event.has_content:
            self.deltas += 1
            if self.first_token_us is None:
                self.first_token_us = now_us
            if self.last_token_us is not None:
                self.gap_us_max = max(self.gap_us_max, now_us - self.last_token_us)
            self.last_token_us = now_us

    def end_attempt(self, outcome: Outcome, now_ms: int, sequence: int) -> None:
        """Remember how the stream on this worker ended."""
        if self.worker is None:
            return
        said = self.usage.prompt_tokens if self.usage is not None else None
        self.ended_attempts.append(
            UsageAttempt(
                attempt=sequence,
                choice=self.index,
                worker_id=self.worker.id,
                started_at_ms=self.attempt_started_ms,
                ended_at_ms=now_ms,
                outcome=outcome,
                prompt_tokens=said or 0,
                output_tokens=self.output_tokens,
            )
        )


@dataclass(frozen=True)
class Upstream:
    """What opening and reading streams needs."""

    engine: Engine
    fleet: Fleet
    clock: Clock


class ChoiceStreams:
    """Opens and reads the streams of one request's choices."""

    def __init__(
        self, upstream: Upstream, live: LiveRequest, model: str, path: str, choices: list[Choice]
    ) -> None:
        self._upstream = upstream
        self._live = live
        self._model = model
        self._path = path
        self._choices = choices
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
        while True:
            worker = self._route(choice, tried)
            tried.append(worker.id)
            started = False
            try:
                async for data, event in self._attempt(choice, worker):
                    started = True
                    yield data, event
            except (WorkerFailed, EngineRefused) as error:
                if started or not self._may_try_again(choice, tried, error):
                    raise
            else:
                return

    def _may_try_again(self, choice: Choice, tried: list[str], error: Exception) -> bool:
        """Whether the same request may fare better elsewhere."""
        if isinstance(error, EngineRefused) and error.status not in FULL:
            return False
        return (
            not self._live.aborting
            and choice.attempts < ATTEMPTS_MAX
            and routing.pick(self._views(), excluded=tried, need=choice.need) is not None
        )

    def _views(self) -> Sequence[WorkerView]:
        return self._upstream.fleet.views(self._model)

    def _route(self, choice: Choice, tried: list[str]) -> Worker:
        view = routing.pick(self._views(), excluded=tried, need=choice.need)
        if view is None:
            raise Overloaded(f"no worker of {self._model} is ready", code="no_worker")
        choice.worker = view.worker
        choice.attempts += 1
        choice.attempt_started_ms = self._upstream.clock.now_ms()
        choice.usage, choice.usage_is_final, choice.finish_reason = None, False, None
        self._attempts += 1
        return view.worker

    async def _attempt(self, choice: Choice, worker: Worker) -> AsyncIterator[tuple[bytes, Event]]:
        clock, fleet = self._upstream.clock, self._upstream.fleet
        sequence = self._attempts
        upstream_id, body = choice.body(worker, choice.attempts)
        stream = self._upstream.engine.stream(worker, self._path, upstream_id, body)
        outcome = Outcome.WORKER_FAILED
        fleet.opened(worker.id)
        self._live.attach(stream)
        try:
            async for data in stream:
                now_us = clock.monotonic_us()
                self._live.last_event_us = now_us
                self._live.saw_event = True
                event = read_event(data)
                choice.note(event, now_us)
                if event.finish_reason is not None:
                    self._live.all_finished = all(c.finished for c in self._choices)
                if event.error is not None:
                    if choice.deltas == 0:
                        raise EngineRefused(event.error.status, event.error.message)
                    raise WorkerFailed("the worker reported an error")
                yield data, event
            if not choice.finished and self._live.stopped is None and not self._live.aborting:
                raise WorkerFailed("the worker ended the stream without finishing it")
            outcome = Outcome.COMPLETED if choice.finished else self._stop_outcome()
        except EngineRefused as error:
            if error.status not in REFUSALS:
                raise WorkerFailed(f"the worker answered {error.status}") from None
            outcome = Outcome.REFUSED
            raise
        except WorkerFailed as error:
            if self._live.stopped is not None:
                outcome = self._stop_outcome()
            elif isinstance(error, WorkerUnreachable):
                fleet.failed(worker.id)
            raise
        finally:
            await stream.aclose()
            self._live.detach(stream)
            fleet.closed(worker.id)
            choice.end_attempt(outcome, clock.now_ms(), sequence)

    def _stop_outcome(self) -> Outcome:
        stopped = self._live.stopped
        return Outcome.WORKER_FAILED if stopped is None else stopped.outcome
