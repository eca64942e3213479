"""The requests that are running in this gateway, and what stops them from outside."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from billing.domain.usage_record import Outcome
from gateway.errors import Overloaded, WeirError, WorkerTimeout
from gateway.serving.ports import ClientConnection, Clock, UpstreamStream
from gateway.serving.withdrawal import Withdrawn
from gateway.telemetry import metrics

_TICK_S = 0.25
_LATE_USAGE_US = 5_000_000
"""An engine that has finished an answer is waited for this long to say what it used."""
_END_US = 250_000
"""And one that has said so, for this long to end the stream."""


@dataclass(frozen=True)
class Stop:
    """Why a request was stopped, and what its client is told if it is still there."""

    outcome: Outcome
    error: WeirError | None


@dataclass(frozen=True)
class Patience:
    """How long an upstream is waited for: before its first event, and between two."""

    first_event_us: int
    stall_us: int


@dataclass(eq=False)
class StreamWatch:
    """One open stream of a request: how long it has been silent, and how long it may be."""

    stream: UpstreamStream
    last_event_us: int
    patience: Patience | None = None
    """None: as configured for workers."""
    saw_event: bool = False
    finished: bool = False
    """Its choice has its finish reason: only the usage is still to come."""
    complete: bool = False
    """And the usage too: only the end of the stream is still to come."""
    replaceable: bool = True
    """While it has said nothing another may be asked instead: then it alone is given up."""
    timed_out: bool = False

    def saw(self, now_us: int) -> None:
        """It said something."""
        self.last_event_us = now_us
        self.saw_event = True

    def allowed_us(self, usual: Patience) -> int:
        """How long it may be silent now."""
        patience = self.patience or usual
        allowed = patience.stall_us if self.saw_event else patience.first_event_us
        if self.complete:
            return min(allowed, _END_US)
        return min(allowed, _LATE_USAGE_US) if self.finished else allowed


class SoFar(NamedTuple):
    """What a running request has used, as its record would say now."""

    request_id: UUID
    prompt_tokens: int
    output_tokens: int


class LiveRequest:
    """One admitted request while it runs. The first stop wins and aborts its streams."""

    def __init__(
        self, connection: ClientConnection, now_us: int, *, tenant_id: str = "", key_id: str = ""
    ) -> None:
        self.connection = connection
        self.tenant_id = tenant_id
        self.key_id = key_id
        self.started_us = now_us
        self.stopped: Stop | None = None
        self.aborting = False
        """Its streams were asked to abort: their ends without a finish are expected."""
        self.gives_way = False
        """They were asked to since its place was taken back: it begins anew."""
        self.watches: set[StreamWatch] = set()
        self.so_far: Callable[[], SoFar] | None = None
        """What it has used until now; None before anything was sent."""

    def stop(self, stop: Stop) -> None:
        """Stop it now: engines are asked to abort, and what they have counted is still read."""
        if self.stopped is None:
            self.stopped = stop
            self.abort_streams()

    def abort_streams(self) -> None:
        """Ask the engines to abort what is open, and what is opened from now on."""
        self.aborting = True
        for watch in list(self.watches):
            watch.stream.abort()

    def give_way(self) -> None:
        """Its place was taken back before a token came: abort what is open; `go_on` follows."""
        self.gives_way = True
        self.abort_streams()

    def go_on(self) -> None:
        """It has a place again: what is opened from now on runs, unless it was stopped."""
        self.gives_way = False
        self.aborting = self.stopped is not None

    def client_left(self) -> None:
        """The client has gone: nobody waits for the answer."""
        self.stop(Stop(Outcome.CLIENT_CANCELLED, None))

    def withdraw(self, refusal: WeirError) -> None:
        """It may not go on, and what it has used until now counts: that it ends is the doing of
        whom it is served for, as where the client leaves."""
        self.stop(Stop(Outcome.CLIENT_CANCELLED, refusal))

    def attach(self, watch: StreamWatch) -> None:
        """A stream that must be aborted with the request, and may not be silent for too long."""
        self.watches.add(watch)
        if self.aborting:
            watch.stream.abort()

    def detach(self, watch: StreamWatch) -> None:
        """It has ended."""
        self.watches.discard(watch)


class LiveRequests:
    """All running requests of this gateway, watched for their deadlines."""

    def __init__(
        self,
        clock: Clock,
        *,
        first_event_timeout_ms: int,
        stall_timeout_ms: int,
        stream_ms_max: int,
        slow_reader_ms_max: int,
    ) -> None:
        self._clock = clock
        self._patience = Patience(first_event_timeout_ms * 1000, stall_timeout_ms * 1000)
        self._stream_us_max = stream_ms_max * 1000
        self._slow_reader_us = slow_reader_ms_max * 1000
        self._live: set[LiveRequest] = set()
        self._stopping: Stop | None = None
        self._empty = asyncio.Event()
        self._empty.set()

    def __len__(self) -> int:
        return len(self._live)

    def add(self, live: LiveRequest) -> None:
        """It runs from now on; its client's leave stops it."""
        self._live.add(live)
        self._empty.clear()
        metrics.LIVE.set(len(self._live))
        if self._stopping is not None:
            live.stop(self._stopping)
        live.connection.on_leave(live.client_left)

    def remove(self, live: LiveRequest) -> None:
        """It is recorded and settled."""
        self._live.discard(live)
        metrics.LIVE.set(len(self._live))
        if not self._live:
            self._empty.set()

    def so_far(self) -> dict[UUID, tuple[int, int]]:
        """Prompt and output tokens so far of every request that runs."""
        told = (live.so_far() for live in self._live if live.so_far is not None)
        return {each.request_id: (each.prompt_tokens, each.output_tokens) for each in told}

    async def wait_empty(self, timeout_ms: int) -> bool:
        """Whether all have ended within the time."""
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self._empty.wait()
        except TimeoutError:
            return False
        return True

    def stop_all(self) -> None:
        """The gateway goes down: what still runs, or begins now, ends with an explicit error,
        unbilled."""
        error = Overloaded("the gateway is shutting down", code="no_capacity")
        self._stopping = Stop(Outcome.GATEWAY_LOST, error)
        for live in list(self._live):
            live.stop(self._stopping)

    def end_withdrawn(self, withdrawn: Withdrawn) -> None:
        """What runs for a withdrawn key or tenant ends with an explicit error."""
        for live in list(self._live):
            refusal = withdrawn.refusal(live.tenant_id, live.key_id)
            if refusal is not None:
                live.withdraw(refusal)

    async def run(self) -> None:
        """Watch the deadlines, for ever."""
        while True:
            await asyncio.sleep(_TICK_S)
            now_us = self._clock.monotonic_us()
            for live in list(self._live):
                self._check(live, now_us)

    def _check(self, live: LiveRequest, now_us: int) -> None:
        blocked_us = live.connection.blocked_since_us
        if blocked_us is not None:
            # Nothing is read meanwhile: that the worker is silent would be our own doing.
            for watch in live.watches:
                watch.last_event_us = now_us
            if now_us - blocked_us > self._slow_reader_us:
                error = WorkerTimeout("the client took no data for too long")
                live.stop(Stop(Outcome.CLIENT_CANCELLED, error))
                live.connection.give_up()
            return
        if now_us - live.started_us > self._stream_us_max:
            live.stop(
                Stop(Outcome.TIMED_OUT, WorkerTimeout("the longest duration of a stream is over"))
            )
        for watch in list(live.watches):
            if now_us - watch.last_event_us > watch.allowed_us(self._patience):
                self._give_up(live, watch)

    def _give_up(self, live: LiveRequest, watch: StreamWatch) -> None:
        if watch.complete or (watch.replaceable and not watch.saw_event):
            watch.timed_out = not watch.complete
            watch.stream.abort()
            return
        watch.timed_out = True
        live.stop(Stop(Outcome.TIMED_OUT, WorkerTimeout("the worker did not answer in time")))
