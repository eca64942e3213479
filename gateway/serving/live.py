"""The requests that are running in this gateway, and what stops them from outside."""

import asyncio
from dataclasses import dataclass

from billing.domain.usage_record import Outcome
from gateway.errors import Overloaded, WeirError, WorkerTimeout
from gateway.serving.ports import ClientConnection, Clock, UpstreamStream
from gateway.telemetry import metrics

_TICK_S = 0.25
_LATE_USAGE_US = 5_000_000
"""An engine that has finished an answer is waited for this long to say what it used."""


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


class LiveRequest:
    """One admitted request while it runs. The first stop wins and aborts its streams."""

    def __init__(self, connection: ClientConnection, now_us: int) -> None:
        self.connection = connection
        self.started_us = now_us
        self.last_event_us = now_us
        self.saw_event = False
        self.all_finished = False
        """Every choice has its finish reason: only the usage is still to come."""
        self.stopped: Stop | None = None
        self.patience: Patience | None = None
        """How long its upstream is waited for, where that is not as configured for workers."""
        self.aborting = False
        """Its streams were asked to abort: their ends without a finish are expected."""
        self._streams: set[UpstreamStream] = set()

    def stop(self, stop: Stop) -> None:
        """Stop it now: engines are asked to abort, and what they have counted is still read."""
        if self.stopped is None:
            self.stopped = stop
            self.abort_streams()

    def abort_streams(self) -> None:
        """Ask the engines to abort what is open, and what is opened from now on."""
        self.aborting = True
        for stream in list(self._streams):
            stream.abort()

    def client_left(self) -> None:
        """The client has gone: nobody waits for the answer."""
        self.stop(Stop(Outcome.CLIENT_CANCELLED, None))

    def attach(self, stream: UpstreamStream) -> None:
        """A stream that must be aborted with the request."""
        self._streams.add(stream)
        if self.aborting:
            stream.abort()

    def detach(self, stream: UpstreamStream) -> None:
        """It has ended."""
        self._streams.discard(stream)


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
            live.last_event_us = now_us
            if now_us - blocked_us > self._slow_reader_us:
                error = WorkerTimeout("the client took no data for too long")
                live.stop(Stop(Outcome.CLIENT_CANCELLED, error))
                live.connection.give_up()
            return
        if now_us - live.started_us > self._stream_us_max:
            live.stop(
                Stop(Outcome.TIMED_OUT, WorkerTimeout("the longest duration of a stream is over"))
            )
        patience = live.patience or self._patience
        patience_us = patience.stall_us if live.saw_event else patience.first_event_us
        if live.all_finished:
            patience_us = min(patience_us, _LATE_USAGE_US)
        if now_us - live.last_event_us > patience_us:
            live.stop(Stop(Outcome.TIMED_OUT, WorkerTimeout("the worker did not answer in time")))
