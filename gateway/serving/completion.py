"""THE STRAIGHT LINE: authenticate → estimate → admit → route → stream → record → settle.

Each step takes values and returns a value; none reaches back. A refusal is an exception before
anything was sent. From admission on exactly one record is written and the lease is settled exactly
once, whatever happens: recorded first, since a crash between leaves a lease that lapses, where the
other order would lose a bill; and both before the client's last byte.
"""

import asyncio
import logging
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from billing.domain.usage_record import Outcome, UsageRecord
from gateway.domain.admission import Demand, ScopeUse
from gateway.domain.lease import Admitted
from gateway.domain.request_id import request_id, upstream_id
from gateway.domain.tenant import Worker
from gateway.errors import (
    ContextLengthExceeded,
    InvalidRequest,
    Overloaded,
    WeirError,
    WorkerFailed,
)
from gateway.serving.answer import Answer, StreamAnswer, WholeAnswer, answer_error
from gateway.serving.authenticate import Caller, authenticate, request_class, usable_model
from gateway.serving.choices import Choice, ChoiceStreams, Upstream
from gateway.serving.estimate import Estimate, estimate
from gateway.serving.leases import Leases
from gateway.serving.limit_headers import limit_headers
from gateway.serving.live import LiveRequest, LiveRequests
from gateway.serving.ports import (
    ClientConnection,
    ClientGone,
    Clock,
    Directory,
    EngineRefused,
    HeldLease,
    Tokenizer,
    UsageJournal,
)
from gateway.serving.record import client_usage, usage_record
from gateway.serving.upstream_body import PATHS, cache_salt, upstream_body
from gateway.telemetry import metrics
from gateway.telemetry.logs import log_failure
from gateway.wire.request import CompletionRequest, Endpoint, read_request

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Policy:
    """What an operator configures of the straight line."""

    directory_stale_ms_max: int
    keepalive_ms: int
    cache_salt_secret: str
    show_worker_header: bool


@dataclass(frozen=True)
class Arrival:
    """One HTTP request as it came in."""

    endpoint: Endpoint
    headers: Mapping[bytes, bytes]
    client_ip: str | None
    connection: ClientConnection
    request_id: UUID
    at_ms: int
    at_us: int


@dataclass
class Running:
    """One admitted request: what it holds and what is known of it."""

    arrival: Arrival
    caller: Caller
    request: CompletionRequest
    estimate: Estimate
    admitted: Admitted
    lease: HeldLease
    live: LiveRequest
    choices: list[Choice]


class Completions:
    """Serves `/v1/chat/completions` and `/v1/completions`."""

    def __init__(
        self,
        *,
        directory: Directory,
        tokenizer: Tokenizer,
        leases: Leases,
        journal: UsageJournal,
        upstream: Upstream,
        live: LiveRequests,
        clock: Clock,
        policy: Policy,
    ) -> None:
        self._directory = directory
        self._tokenizer = tokenizer
        self._leases = leases
        self._journal = journal
        self._upstream = upstream
        self._live = live
        self._clock = clock
        self._policy = policy
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(
        self,
        endpoint: Endpoint,
        headers: Mapping[bytes, bytes],
        client_ip: str | None,
        connection: ClientConnection,
    ) -> None:
        """Answer one request. Runs to its end even where the caller is cancelled meanwhile."""
        now_ms = self._clock.now_ms()
        arrival = Arrival(
            endpoint=endpoint,
            headers=headers,
            client_ip=client_ip,
            connection=connection,
            request_id=request_id(now_ms, secrets.randbits(74)),
            at_ms=now_ms,
            at_us=self._clock.monotonic_us(),
        )
        task = asyncio.create_task(self._answer(arrival))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        await asyncio.shield(task)

    async def _answer(self, arrival: Arrival) -> None:
        try:
            await self._straight_line(arrival)
        except ClientGone:
            return
        except WeirError as error:
            metrics.ERRORS.labels(code=error.code).inc()
            await answer_error(arrival.connection, error, [_id_header(arrival)])
        except Exception as error:  # noqa: BLE001 - a bug of ours is answered and logged
            log_failure(_log, error, "request %s failed inside the gateway", arrival.request_id)
            metrics.ERRORS.labels(code="internal_error").inc()
            failure = WeirError("the gateway failed on this request")
            await answer_error(arrival.connection, failure, [_id_header(arrival)])

    async def _straight_line(self, arrival: Arrival) -> None:
        caller = authenticate(
            arrival.headers,
            arrival.client_ip,
            self._directory,
            now_ms=arrival.at_ms,
            directory_stale_ms_max=self._policy.directory_stale_ms_max,
        )
        request = read_request(arrival.endpoint, await arrival.connection.body(), arrival.headers)
        model = usable_model(caller, request.model, self._directory)
        self._require_worker(model.id)
        needs = await estimate(request, model, caller, self._tokenizer)
        if arrival.connection.left:
            raise ClientGone
        running, uses = await self._admit(arrival, caller, request, needs)
        try:
            await self._run(running, uses)
        finally:
            self._live.remove(running.live)

    async def _run(self, running: Running, uses: Sequence[ScopeUse]) -> None:
        """From admission to the last byte."""
        answer = self._answer_for(running, uses)
        outcome, failure = await self._stream(running, answer)
        record = await self._record(running, outcome)
        await self._settle(running, record)
        if failure is not None:
            metrics.ERRORS.labels(code=failure.code).inc()
            await answer.fail(failure)
        elif outcome is Outcome.COMPLETED:
            await answer.complete(client_usage(record, running.choices))

    def _require_worker(self, model: str) -> None:
        if not any(view.healthy for view in self._upstream.fleet.views(model)):
            raise Overloaded(f"no worker of {model} is ready", code="no_worker")

    async def _admit(
        self, arrival: Arrival, caller: Caller, request: CompletionRequest, needs: Estimate
    ) -> tuple[Running, tuple[ScopeUse, ...]]:
        """Hold lease and reservation, and have it in the journal. Nothing is held if it raises."""
        if self._journal.failing:
            raise Overloaded("usage cannot be recorded", code="metering_unavailable")
        total = needs.prompt_tokens + needs.output_tokens
        demand = Demand(
            request_id=arrival.request_id.hex,
            sequences=request.sequences,
            tokens=total,
            floor_tokens=total if needs.output_is_maximum else needs.prompt_tokens + 1,
        )
        lease, uses = await self._leases.acquire(caller, request.model, demand)
        admitted = Admitted(
            request_id=arrival.request_id,
            tenant_id=caller.tenant.id,
            api_key_id=caller.key.id,
            model=request.model,
            request_class=request_class(caller, asked_batch=request.asked_batch).value,
            admitted_at_ms=arrival.at_ms,
            prompt_tokens=needs.prompt_tokens,
            reserved_tokens=lease.reserved_tokens,
            sequences=request.sequences,
        )
        try:
            if arrival.connection.left:
                raise ClientGone
            await self._journal.admitted(admitted)
        except BaseException:
            await self._leases.settle(lease, actual_tokens=0, ran=False)
            raise
        live = LiveRequest(arrival.connection, self._clock.monotonic_us())
        self._live.add(live)
        choices = self._choices(arrival, caller, request, needs)
        return Running(arrival, caller, request, needs, admitted, lease, live, choices), uses

    def _choices(
        self, arrival: Arrival, caller: Caller, request: CompletionRequest, needs: Estimate
    ) -> list[Choice]:
        salt = cache_salt(self._policy.cache_salt_secret, caller.tenant)

        def choice(index: int) -> Choice:
            prompt = index // request.choices_per_prompt

            def body(worker: Worker, attempt: int) -> tuple[str, bytes]:
                identifier = upstream_id(arrival.request_id, index, attempt)
                return identifier, upstream_body(
                    request,
                    worker=worker,
                    prompt=prompt,
                    upstream_id=identifier,
                    max_tokens=needs.max_tokens,
                    salt=salt,
                )

            return Choice(index=index, prompt=prompt, body=body)

        return [choice(index) for index in range(request.sequences)]

    def _answer_for(self, running: Running, uses: Sequence[ScopeUse]) -> Answer:
        arrival, request = running.arrival, running.request
        headers = [
            _id_header(arrival),
            (b"x-weir-queue-ms", b"0"),
            *limit_headers(uses),
        ]
        identifier, created = str(arrival.request_id), arrival.at_ms // 1000
        if request.stream:
            return StreamAnswer(
                arrival.connection, request, identifier, created, headers,
                keepalive_s=self._policy.keepalive_ms / 1000,
            )  # fmt: skip
        return WholeAnswer(arrival.connection, request, identifier, created, headers)

    async def _stream(self, running: Running, answer: Answer) -> tuple[Outcome, WeirError | None]:
        """Route and relay. Returns how it ended and, unless it completed, what to tell a client
        that is still there."""
        request, live = running.request, running.live
        streams = ChoiceStreams(
            self._upstream, live, request.model, PATHS[request.endpoint], running.choices
        )
        try:
            if live.stopped is None:
                async for choice, data, event in streams.events():
                    await answer.take(choice, data, event)
        except EngineRefused as error:
            return Outcome.REFUSED, _refusal(error)
        except WeirError as error:
            if live.stopped is None:
                return Outcome.WORKER_FAILED, error
        except Exception as error:  # noqa: BLE001 - a bug of ours is recorded and logged as ours
            log_failure(_log, error, "request %s failed streaming", running.admitted.request_id)
            live.abort_streams()
            return Outcome.WORKER_FAILED, WorkerFailed("the gateway failed on this request")
        if all(choice.finished for choice in running.choices):
            return Outcome.COMPLETED, None
        if live.stopped is not None:
            return live.stopped.outcome, live.stopped.error
        return Outcome.WORKER_FAILED, WorkerFailed("the worker stopped before the end")

    async def _record(self, running: Running, outcome: Outcome) -> UsageRecord:
        """Durable on return."""
        record = usage_record(
            running.admitted,
            running.choices,
            outcome,
            prompt_counts=running.estimate.prompt_counts,
            arrival_us=running.arrival.at_us,
            ended_at_ms=self._clock.now_ms(),
        )
        await self._journal.ended(record)
        metrics.observe_ended(record)
        return record

    async def _settle(self, running: Running, record: UsageRecord) -> None:
        await self._leases.settle(
            running.lease,
            actual_tokens=record.prompt_tokens + record.output_tokens,
            ran=True,
        )


def _id_header(arrival: Arrival) -> tuple[bytes, bytes]:
    return b"x-request-id", str(arrival.request_id).encode()


def _refusal(error: EngineRefused) -> WeirError:
    """What a tenant is told of an engine's refusal: never the engine's own words, which may hold
    paths and the prompt."""
    if error.status in (429, 503):
        return Overloaded("the engine's queue is full", code="no_capacity")
    if "context length" in error.message or "maximum allowed length" in error.message:
        return ContextLengthExceeded("prompt and output do not fit the engine's context")
    return InvalidRequest("the engine refused the request as invalid")
