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

from billing.domain.rating import rated
from billing.domain.usage_record import Outcome, UsageRecord
from gateway.domain import routing
from gateway.domain.engine_facts import engine_priority
from gateway.domain.lease import Admitted
from gateway.domain.request_id import request_id, upstream_id
from gateway.domain.scopes import ScopeUse
from gateway.domain.tenant import Worker
from gateway.errors import Overloaded, WeirError
from gateway.serving.admit import admit
from gateway.serving.answer import Answer, StreamAnswer, WholeAnswer, answer_error
from gateway.serving.arrival import Arrival
from gateway.serving.attempt import Upstream
from gateway.serving.authenticate import Caller, authenticate, request_class, usable_model
from gateway.serving.choice import Choice
from gateway.serving.choices import ChoiceStreams
from gateway.serving.estimate import Estimate, estimate, fewest_tokens
from gateway.serving.hosted import HostedRoute
from gateway.serving.leases import Leases
from gateway.serving.limit_headers import limit_headers
from gateway.serving.live import LiveRequest, LiveRequests
from gateway.serving.ports import (
    ClientConnection,
    ClientGone,
    Clock,
    Directory,
    HeldLease,
    Tokenizer,
    UsageJournal,
)
from gateway.serving.record import client_usage, usage_record
from gateway.serving.relay import relay
from gateway.serving.upstream_body import PATHS, cache_salt, upstream_body
from gateway.telemetry import metrics
from gateway.telemetry.logs import log_failure
from gateway.wire.bodies import Endpoint
from gateway.wire.request import CompletionRequest, read_request

LOOKED_AT_CHARACTERS = 16_384
"""Counting a shorter prompt costs less than a look at the limits first."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Policy:
    """What an operator configures of the straight line."""

    directory_stale_ms_max: int
    stores_unseen_ms_max: int
    keepalive_ms: int
    cache_salt_secret: str
    show_worker_header: bool


@dataclass
class Running:
    """One admitted request: what it holds and what is known of it."""

    arrival: Arrival
    request: CompletionRequest
    estimate: Estimate
    admitted: Admitted
    lease: HeldLease
    live: LiveRequest
    choices: list[Choice]
    route: HostedRoute


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
            await answer_error(arrival.connection, error, [arrival.id_header])
        except Exception as error:  # noqa: BLE001 - a bug of ours is answered and logged
            log_failure(_log, error, "request %s failed inside the gateway", arrival.request_id)
            metrics.ERRORS.labels(code="internal_error").inc()
            failure = WeirError("the gateway failed on this request")
            await answer_error(arrival.connection, failure, [arrival.id_header])

    async def _straight_line(self, arrival: Arrival) -> None:
        caller = authenticate(
            arrival.headers,
            arrival.client_ip,
            self._directory,
            now_ms=arrival.at_ms,
            directory_stale_ms_max=self._policy.directory_stale_ms_max,
            stores_unseen_ms_max=self._policy.stores_unseen_ms_max,
        )
        request = read_request(arrival.endpoint, await arrival.connection.body(), arrival.headers)
        model = usable_model(caller, request.model, self._directory)
        route = HostedRoute(self._upstream.hosted, caller, request)
        self._require_upstream(route)
        await self._look(caller, request)
        workers = routing.eligible(self._upstream.fleet.views(model.id))
        needs = await estimate(request, model, caller, self._tokenizer, workers)
        if arrival.connection.left:
            raise ClientGone
        held = await admit(
            arrival, caller, request, needs, leases=self._leases, journal=self._journal
        )
        choices = self._choices(arrival, caller, request, needs)
        live = LiveRequest(arrival.connection, self._clock.monotonic_us())
        running = Running(arrival, request, needs, held.admitted, held.lease, live, choices, route)
        self._live.add(live)
        try:
            await self._run(running, held.uses)
        finally:
            self._live.remove(live)

    async def _look(self, caller: Caller, request: CompletionRequest) -> None:
        """A long prompt is counted only where the limits have room for it."""
        if sum(request.prompt_characters) > LOOKED_AT_CHARACTERS:
            await self._leases.look(
                caller,
                request.model,
                sequences=request.sequences,
                fewest_tokens=fewest_tokens(request),
            )

    def _require_upstream(self, route: HostedRoute) -> None:
        model = route.request.model
        if not routing.eligible(self._upstream.fleet.views(model)) and route.target() is None:
            raise Overloaded(f"no worker of {model} is ready", code="no_worker")

    async def _run(self, running: Running, uses: Sequence[ScopeUse]) -> None:
        """From admission to the last byte."""
        answer = self._answer_for(running, uses)
        try:
            path = PATHS[running.request.endpoint]
            streams = ChoiceStreams(
                self._upstream,
                running.live,
                path,
                running.choices,
                running.route,
                max_tokens=running.estimate.max_tokens,
            )
            sent = running.request.forward
            ending = await relay(streams, running.choices, answer, running.live, sent)
            record = self._usage(running, ending.outcome)
            failure = await self._record(record) or ending.failure
            await self._settle(running.lease, record)
            if failure is not None:
                metrics.ERRORS.labels(code=failure.code).inc()
                await answer.fail(failure)
            elif record.outcome is Outcome.COMPLETED:
                await answer.complete(client_usage(record, running.choices))
        finally:
            await answer.close()

    def _choices(
        self, arrival: Arrival, caller: Caller, request: CompletionRequest, needs: Estimate
    ) -> list[Choice]:
        salt = cache_salt(self._policy.cache_salt_secret, caller.tenant)
        asked = request_class(caller, asked_batch=request.asked_batch)

        def choice(index: int) -> Choice:
            prompt = index // request.choices_per_prompt

            def body(worker: Worker, attempt: int) -> tuple[str, bytes]:
                identifier = upstream_id(arrival.request_id, index, attempt)
                facts = routing.facts_of(self._upstream.fleet.views(request.model), worker.id)
                return identifier, upstream_body(
                    request,
                    worker=worker,
                    prompt=prompt,
                    sample=index % request.choices_per_prompt,
                    upstream_id=identifier,
                    max_tokens=needs.max_tokens,
                    salt=salt,
                    priority=engine_priority(asked, facts),
                )

            return Choice(index=index, prompt=prompt, body=body, need=needs.need)

        return [choice(index) for index in range(request.sequences)]

    def _answer_for(self, running: Running, uses: Sequence[ScopeUse]) -> Answer:
        arrival, request = running.arrival, running.request
        headers = [arrival.id_header, (b"x-weir-queue-ms", b"0"), *limit_headers(uses)]
        identifier, created = str(arrival.request_id), arrival.at_ms // 1000
        shown = running.choices if self._policy.show_worker_header else []
        if request.stream:
            return StreamAnswer(
                arrival.connection, request, identifier, created, headers, shown=shown,
                keepalive_s=self._policy.keepalive_ms / 1000,
            )  # fmt: skip
        return WholeAnswer(arrival.connection, request, identifier, created, headers, shown=shown)

    def _usage(self, running: Running, outcome: Outcome) -> UsageRecord:
        used = usage_record(
            running.admitted,
            running.choices,
            outcome,
            prompt_counts=running.estimate.prompt_counts,
            arrival_us=running.arrival.at_us,
            ended_at_ms=self._clock.now_ms(),
        )
        return rated(used, self._directory.price_book(), running.admitted.currency)

    async def _record(self, record: UsageRecord) -> WeirError | None:
        """Durable on return. What is returned says that it is not: then the admission, which is
        durable, becomes gateway_lost when the journal is next opened."""
        try:
            await self._journal.ended(record)
        except WeirError as error:
            return error
        except Exception as error:  # noqa: BLE001 - a bug of ours; the lease is settled all the same
            log_failure(_log, error, "request %s could not be recorded", record.request_id)
            return WeirError("the gateway failed on this request")
        metrics.observe_ended(record)
        return None

    async def _settle(self, lease: HeldLease, record: UsageRecord) -> None:
        await self._leases.settle(
            lease,
            actual_tokens=record.prompt_tokens + record.output_tokens,
            ran=bool(record.attempts),
        )
