"""THE STRAIGHT LINE: authenticate → estimate → admit → route → stream → record → settle.

Each step takes values and returns a value; none reaches back. A refusal is an exception before
anything was sent. From admission on exactly one record is written and the lease is settled exactly
once, whatever happens: recorded first, since a crash between leaves a lease that lapses, where the
other order would lose a bill; and both before the client's last byte. What a bug of ours leaves
undone of the two is done by `closing`.
"""

import asyncio
import logging
import secrets
from collections.abc import Callable, Coroutine, Mapping

from billing.domain.usage_record import Outcome, UsageRecord
from gateway.domain import routing
from gateway.domain.body_room import BodyRoom, HeldBody
from gateway.domain.pools import pool_of
from gateway.domain.request_id import request_id
from gateway.domain.tenant import ApiKey
from gateway.domain.worker import WorkerView
from gateway.errors import WeirError
from gateway.serving.admit import Wait, admit
from gateway.serving.answer import Answer, StreamAnswer, WholeAnswer, answer_error
from gateway.serving.arrival import Arrival
from gateway.serving.asking import Asking
from gateway.serving.attempt import Upstream
from gateway.serving.authenticate import Caller, authenticate, request_class, usable_model
from gateway.serving.choices import ChoiceStreams
from gateway.serving.closing import Closing, Running
from gateway.serving.dispatch import choices_of
from gateway.serving.estimate import Estimate
from gateway.serving.estimator import Estimator
from gateway.serving.failing import tell_failed
from gateway.serving.hosted import HostedRoute
from gateway.serving.leases import Leases
from gateway.serving.limit_headers import limit_headers, queue_header
from gateway.serving.live import LiveRequest, LiveRequests
from gateway.serving.month_now import month_now
from gateway.serving.policy import Policy
from gateway.serving.pool_workers import workers_of
from gateway.serving.ports import (
    ClientConnection,
    ClientGone,
    Clock,
    Directory,
    RequestReader,
    Tokenizer,
    UsageJournal,
)
from gateway.serving.queue.places import Places
from gateway.serving.record import client_usage
from gateway.serving.relay import relay
from gateway.serving.spending import spending_of
from gateway.serving.tracing import NO_TRACING, Tracing
from gateway.serving.upstream_body import PATHS
from gateway.serving.withdrawal import check_not_withdrawn
from gateway.telemetry import trace_names as steps
from gateway.telemetry.log_context import begin_request, name_caller, name_model, name_trace
from gateway.telemetry.logs import log_failure
from gateway.wire.bodies import Endpoint
from gateway.wire.request import CompletionRequest

_READ_AGAIN_US = 100_000
"""A caller that was read so short ago is still what every gateway goes by."""
_log = logging.getLogger(__name__)


class Completions:
    """Serves `/v1/chat/completions` and `/v1/completions`."""

    def __init__(
        self,
        *,
        directory: Directory,
        room: BodyRoom,
        reader: RequestReader,
        tokenizer: Tokenizer,
        leases: Leases,
        places: Places,
        journal: UsageJournal,
        upstream: Upstream,
        live: LiveRequests,
        clock: Clock,
        policy: Policy,
        on_ended: Callable[[UsageRecord], None] = lambda _: None,
        tracing: Tracing = NO_TRACING,
    ) -> None:
        """`on_ended` hears of each request's record."""
        self._directory = directory
        self._room = room
        self._reader = reader
        self._estimator = Estimator(tokenizer, leases)
        self._leases = leases
        self._places = places
        self._journal = journal
        self._closing = Closing(
            estimator=self._estimator,
            leases=leases,
            places=places,
            journal=journal,
            directory=directory,
            clock=clock,
            on_ended=on_ended,
        )
        self._upstream = upstream
        self._live = live
        self._clock = clock
        self._policy = policy
        self._tracing = tracing
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(
        self,
        endpoint: Endpoint,
        headers: Mapping[bytes, bytes],
        client_ip: str | None,
        connection: ClientConnection,
    ) -> None:
        """Answer one request. Runs to its end even where the caller is cancelled meanwhile."""
        now_ms, now_us = self._clock.now_ms(), self._clock.monotonic_us()
        arrival = Arrival(
            endpoint=endpoint,
            headers=headers,
            client_ip=client_ip,
            connection=connection,
            request_id=request_id(now_ms, secrets.randbits(74)),
            at_ms=now_ms,
            at_us=now_us,
            trace=self._tracing.begin(headers, at_ms=now_ms, at_us=now_us),
        )
        await asyncio.shield(self._kept(self._answer(arrival)))

    def _kept(self, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        """A task that goes on where who waits for it is cancelled."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _answer(self, arrival: Arrival) -> None:
        begin_request(arrival.request_id, arrival.trace.trace_id)
        try:
            await self._straight_line(arrival)
        except ClientGone as gone:
            arrival.trace.failed(gone)
        except WeirError as error:
            tell_failed(arrival, error)
            await answer_error(arrival.connection, error, [arrival.id_header])
        except Exception as error:  # noqa: BLE001 - a bug of ours is answered and logged
            log_failure(_log, error, "request %s failed inside the gateway", arrival.request_id)
            failure = WeirError("the gateway failed on this request")
            tell_failed(arrival, failure)
            await answer_error(arrival.connection, failure, [arrival.id_header])
        finally:
            self._tracing.end(arrival)

    async def _straight_line(self, arrival: Arrival) -> None:
        trace = arrival.trace
        caller = await trace.of(steps.AUTHENTICATE, self._authenticated(arrival))
        with self._room.body_of(caller.tenant.id) as body:
            asking = await trace.of(steps.READ, self._read(arrival, caller, body))
            needs = await self._estimate(asking)
            if arrival.connection.left:
                raise ClientGone
            check_not_withdrawn(caller.key, self._directory)  # its body may have taken its time
            held = await trace.of(
                steps.ADMIT,
                admit(
                    asking,
                    needs,
                    count=lambda: self._estimate(asking, exactly=True),
                    caller_now=lambda: self._caller_now(asking),
                    is_served=self._is_served(asking.pool) or asking.route.target() is None,
                    leases=self._leases,
                    journal=self._journal,
                    places=self._places,
                    clock=self._clock,
                ),
            )
        live = LiveRequest(
            arrival.connection,
            self._clock.monotonic_us(),
            tenant_id=caller.tenant.id,
            key_id=caller.key.id,
        )
        running = Running(asking, held, live)
        try:
            self._live.add(live)
            self._withdraw_if_late(live, caller.key)
            running.choices = choices_of(
                asking,
                held.needs,
                self._upstream.fleet,
                cache_salt_secret=self._policy.cache_salt_secret,
            )
            live.so_far = running.so_far
            await self._run(running)
        finally:
            try:
                if not running.is_settled:
                    await asyncio.shield(self._kept(self._closing.close(running)))
            finally:
                self._live.remove(live)

    def _withdraw_if_late(self, live: LiveRequest, key: ApiKey) -> None:
        """What is withdrawn is told to those that are live: of what came just before, see here."""
        try:
            check_not_withdrawn(key, self._directory)
        except WeirError as refusal:
            live.withdraw(refusal)

    async def _authenticated(self, arrival: Arrival) -> Caller:
        await self._directory.waken()
        caller = self._caller(arrival, now_ms=arrival.at_ms)
        name_caller(caller.tenant.id, caller.key.id)
        self._tracing.join(arrival.trace, arrival.headers)
        name_trace(arrival.trace.trace_id)
        return caller

    def _caller(self, arrival: Arrival, *, now_ms: int) -> Caller:
        return authenticate(
            arrival.headers,
            arrival.client_ip,
            self._directory,
            now_ms=now_ms,
            directory_stale_ms_max=self._policy.directory_stale_ms_max,
            stores_unseen_ms_max=self._policy.stores_unseen_ms_max,
        )

    async def _caller_now(self, asking: Asking) -> Caller:
        """Who asks, as it is now: a request may have waited for minutes."""
        if self._clock.monotonic_us() - asking.arrival.at_us < _READ_AGAIN_US:
            return asking.caller
        await self._directory.waken()
        caller = self._caller(asking.arrival, now_ms=self._clock.now_ms())
        usable_model(caller, asking.model.id, self._directory)
        return caller

    async def _read(self, arrival: Arrival, caller: Caller, held: HeldBody) -> Asking:
        """The request, once somebody is there who may serve it: no worker can be waited for. Raises
        what `Places.until_worker` does, Unpriced, and what reading it and its model raise."""
        body = await arrival.connection.body(held.grow)
        request = await self._reader.read(
            arrival.endpoint, body, arrival.headers, tenant_id=caller.tenant.id
        )
        model = usable_model(caller, request.model, self._directory)
        name_model(model.id)
        asked = request_class(caller, asked_batch=request.asked_batch)
        spending = spending_of(
            caller, model.id, self._directory, at_ms=arrival.at_ms, request_class=asked
        )
        route = HostedRoute(self._upstream.hosted, caller, request, spending)
        waited_ms = 0
        pool = pool_of(model.id, asked, self._directory.workers(model.id))
        if not self._is_served(pool) and route.target() is None:
            waited_ms = await self._until_worker(pool, arrival, caller, request)
        return Asking(arrival, caller, request, model, pool, route, waited_ms)

    async def _until_worker(
        self, pool: str, arrival: Arrival, caller: Caller, request: CompletionRequest
    ) -> int:
        wait = Wait(self._clock)
        try:
            return await arrival.trace.of(
                steps.WORKER_WAIT,
                self._places.until_worker(
                    pool, caller, request, arrival.headers, arrival.connection
                ),
            )
        except WeirError as refused:
            raise wait.told_to(refused) from None

    def _is_served(self, pool: str) -> bool:
        return bool(self._workers(pool))

    async def _estimate(self, asking: Asking, *, exactly: bool = False) -> Estimate:
        return await asking.arrival.trace.of(
            steps.ESTIMATE,
            self._estimator.estimate(
                asking.request,
                asking.model,
                asking.caller,
                self._workers(asking.pool),
                month=asking.spending.month,
                exactly=exactly,
            ),
        )

    def _workers(self, pool: str) -> list[WorkerView]:
        return routing.eligible(workers_of(self._upstream.fleet, pool))

    async def _run(self, running: Running) -> None:
        """From admission to the last byte."""
        asking, held = running.asking, running.held
        trace = asking.arrival.trace
        answer = self._answer_for(running)
        try:
            streams = ChoiceStreams(
                self._upstream,
                running.live,
                PATHS[asking.request.endpoint],
                running.choices,
                asking.route,
                pool=asking.pool,
                place=held.place,
                max_tokens=held.needs.max_tokens,
                check_caller=lambda: self._caller_now(asking),
                trace=trace,
            )
            sent = asking.request.forward
            ending = await trace.of(
                steps.STREAM, relay(streams, running.choices, answer, running.live, sent)
            )
            record = await trace.of(steps.COUNT, self._closing.usage(running, ending.outcome))
            unrecorded = await trace.of(steps.RECORD, self._closing.record(running, record))
            failure = unrecorded or ending.failure
            if failure is None and record.outcome is Outcome.GATEWAY_LOST:
                failure = WeirError("the gateway failed on this request")
            await trace.of(steps.SETTLE, self._closing.settle(running, record))
            if failure is not None:
                tell_failed(asking.arrival, failure)
                await answer.fail(failure)
            elif record.outcome is Outcome.COMPLETED:
                await answer.complete(client_usage(record, running.choices))
        finally:
            await answer.close()

    def _answer_for(self, running: Running) -> Answer:
        arrival, request = running.asking.arrival, running.asking.request
        month = month_now(running.asking.caller.tenant, arrival.at_ms)
        limits = limit_headers(running.held.uses, month)
        headers = [arrival.id_header, queue_header(running.held.queue_ms), *limits]
        identifier, created = str(arrival.request_id), arrival.at_ms // 1000
        shown = running.choices if self._policy.show_worker_header else []
        if request.stream:
            return StreamAnswer(
                arrival.connection, request, identifier, created, headers, shown=shown,
                keepalive_s=self._policy.keepalive_ms / 1000,
            )  # fmt: skip
        return WholeAnswer(arrival.connection, request, identifier, created, headers, shown=shown)
