"""One attempt: one stream of one choice on one worker, from its opening to what it tells."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from billing.domain.usage_record import Outcome
from gateway.domain.hosted import HostedTarget
from gateway.domain.queue.tickets import Band
from gateway.domain.tenant import EngineKind, Worker
from gateway.errors import HostedSendRefused, WorkerFailed, WorkerTimeout, WorkerUnreachable
from gateway.serving.attempt_span import attempt_attributes, attempt_failure
from gateway.serving.choice import Choice
from gateway.serving.hosted import HostedFallback, HostedRoute
from gateway.serving.live import LiveRequest, Patience, StreamWatch
from gateway.serving.ports import Clock, Engine, EngineRefused, Fleet
from gateway.serving.queue.pace import UNPACED, Pace, Paces, nobody_paces
from gateway.telemetry import metrics
from gateway.telemetry.trace_names import ATTEMPT
from gateway.telemetry.tracing import NO_TRACE, RequestTrace, Step
from gateway.wire.chunk_id import chunk_id
from gateway.wire.refusal import FULL, blames_grammar
from gateway.wire.upstream import Event, read_event

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
    pace: Paces = nobody_paces
    """Sees how fast streams come."""


@dataclass
class Attempt:
    """One attempt. At a hosted provider the route has given its leave (`HostedRoute.begin`)."""

    upstream: Upstream
    live: LiveRequest
    route: HostedRoute
    choice: Choice
    worker: Worker
    path: str
    sequence: int
    """Counts the attempts of the request."""
    max_tokens: int
    """What the engine is told."""
    band: Band = Band.INTERACTIVE
    outcome: Outcome = Outcome.WORKER_FAILED
    refused_by_status: bool = False
    sent: bool = True
    works: bool | None = None
    """What it tells of the worker; None where nothing."""
    pace: Pace = UNPACED
    trace: RequestTrace = NO_TRACE
    step: Step = field(init=False)
    failed_as: str | None = None
    """What its trace says of why, where the outcome says less."""

    async def events(self) -> AsyncIterator[tuple[bytes, Event]]:
        """Every event, noted in the choice. Raises WorkerFailed, WorkerTimeout, EngineRefused,
        HostedSendRefused."""
        choice, clock, fleet = self.choice, self.upstream.clock, self.upstream.fleet
        self.step = self.trace.leaf(ATTEMPT)
        choice.begin_attempt(self.worker, clock.now_ms())
        watch = self._open()
        fleet.opened(self.worker.id)
        self.pace = self.upstream.pace(self.worker, self.band)
        self.live.attach(watch)
        try:
            async for data, event in self._read(watch):
                yield data, event
            if not choice.finished and not self.live.aborting:
                raise WorkerFailed("the worker ended the stream without finishing it")
            self._ended(watch)
        except EngineRefused as error:
            self._refused(error)
            raise
        except HostedSendRefused:
            self.sent = False
            raise
        except WorkerFailed as error:
            self._ended(watch, error)
            # What breaks after the answer and its usage have been read changes neither.
            if not choice.finished:
                raise
        finally:
            await watch.stream.aclose()
            self.live.detach(watch)
            fleet.closed(self.worker.id)
            self._close()

    def _open(self) -> StreamWatch:
        upstream_id, body = self.choice.body(self.worker, self.choice.attempts)
        target = self.worker if isinstance(self.worker, HostedTarget) else None
        stream = self.upstream.engine.stream(
            self.worker,
            self.path,
            upstream_id,
            body,
            check_send=None if target is None else lambda: self.route.check_send(target),
            # What a provider is told is what its answer needs: no id of ours.
            traceparent=self.step.traceparent if target is None else None,
        )
        patience = None
        if target is not None:
            patience = Patience(
                target.first_event_timeout_ms * 1000, target.stall_timeout_ms * 1000
            )
        return StreamWatch(stream, self.upstream.clock.monotonic_us(), patience)

    async def _read(self, watch: StreamWatch) -> AsyncIterator[tuple[bytes, Event]]:
        """The end of an answer that is as long as it may be is held back until the engine has said
        how long that was: SGLang cuts a maximum down to what its KV pool holds, and calls that
        `length` too."""
        held: tuple[bytes, Event] | None = None
        try:
            async for data in watch.stream:
                event = self._noted(watch, data)
                if held is not None:
                    self._check_length()
                    yield held
                    held = None
                if event.finish_reason == "length" and self.worker.kind is EngineKind.SGLANG:
                    held = (data, event)
                else:
                    yield data, event
        except WorkerFailed:
            # The answer has ended all the same, unless it turned out to be cut short.
            if held is not None and self.choice.finished:
                yield held
            raise
        if held is not None:
            yield held

    def _noted(self, watch: StreamWatch, data: bytes) -> Event:
        choice, now_us = self.choice, self.upstream.clock.monotonic_us()
        self._answered(watch, data)
        watch.saw(now_us)
        event = read_event(data)
        choice.note(event, now_us)
        if event.has_content and now_us >= self.pace.due_us:
            self.pace.token(now_us, None if choice.usage is None else choice.usage.output_tokens)
        watch.finished = choice.finished
        watch.complete = choice.finished and choice.usage_is_final
        if event.error is not None:
            if choice.deltas == 0:
                raise EngineRefused(event.error.status, event.error.message)
            raise WorkerFailed("the worker reported an error")
        return event

    def _answered(self, watch: StreamWatch, data: bytes) -> None:
        if not isinstance(self.worker, HostedTarget):
            return
        if not watch.saw_event:
            self.route.answered(self.worker)
        if self.choice.provider_request_id is None:
            self.choice.provider_request_id = watch.stream.provider_request_id or chunk_id(data)

    def _check_length(self) -> None:
        choice = self.choice
        if choice.usage is None or choice.usage.output_tokens is None:
            return
        if choice.usage_is_final and choice.usage.output_tokens < self.max_tokens:
            choice.cut_short = True
            raise WorkerFailed("the engine had no room for the whole answer and cut it short")

    def _refused(self, error: EngineRefused) -> None:
        self.refused_by_status, self.failed_as = True, str(error.status)
        self.works = error.status in REFUSALS - FULL
        if error.status not in REFUSALS:
            if blames_grammar(error.message, self.route.request.forward):
                self.outcome = Outcome.REFUSED
                return
            raise WorkerFailed(f"the worker answered {error.status}") from None
        self.outcome = Outcome.REFUSED

    def _ended(self, watch: StreamWatch, error: WorkerFailed | None = None) -> None:
        """Decide how it ended. Raises WorkerTimeout where it alone was given up."""
        was_taken_back = self.live.gives_way and self.live.stopped is None
        if self.choice.finished:
            # What was taken back is dropped, also where the engine was done with it by then.
            self.outcome = Outcome.TAKEN_BACK if was_taken_back else Outcome.COMPLETED
            self.works = True
            return
        if watch.timed_out:
            self.outcome, self.works = Outcome.TIMED_OUT, False
            if self.live.stopped is None:
                raise WorkerTimeout("the worker did not answer in time") from error
        elif self.live.stopped is not None:
            self.outcome = self.live.stopped.outcome
        elif was_taken_back:
            self.outcome = Outcome.TAKEN_BACK
        elif not self.live.aborting:
            self.works = False
            self.failed_as = "worker_unreachable" if isinstance(error, WorkerUnreachable) else None
            if isinstance(error, WorkerUnreachable) and self.worker.provider == "self":
                self.upstream.fleet.failed(self.worker.id)

    def _told(self) -> None:
        """Its span ends, with what is known of it."""
        step = self.step
        step.end()
        step.tell(
            lambda: attempt_attributes(
                self.choice,
                self.worker,
                self.outcome,
                path=self.path,
                sequence=self.sequence,
                max_tokens=self.max_tokens,
                began_us=step.began_us,
                sent=self.sent,
            ),
            attempt_failure(self.outcome, self.failed_as, sent=self.sent),
        )

    def _close(self) -> None:
        choice, target = self.choice, self.worker
        now_us = self.upstream.clock.monotonic_us()
        self.pace.end(choice.last_token_us, choice.output_tokens, now_us)
        self._told()
        if self.sent:
            choice.end_attempt(
                self.outcome,
                self.upstream.clock.now_ms(),
                self.sequence,
                refused_by_status=self.refused_by_status,
            )
        else:
            choice.take_back_attempt()
        if isinstance(target, HostedTarget):
            self.route.end(target, works=self.works)
            if self.sent:
                metrics.HOSTED_ATTEMPTS.labels(
                    provider=target.provider, outcome=self.outcome.value
                ).inc()
