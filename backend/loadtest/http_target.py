"""An open loop against any OpenAI-compatible URL: no request waits for another.

Each is sent at the instant that the schedule fixed beforehand, whatever became of the others, and
its latency counts from that instant (no coordinated omission: the rule is wrk2's). It runs on any
event loop; on uvloop an event costs the least.
"""

import asyncio
import contextlib
import gc
import time
from array import array
from bisect import insort
from collections.abc import Callable, Iterator, Mapping

from backend.loadtest.flight import Flight
from backend.loadtest.http_connection import (
    Address,
    Connections,
    address_of,
    allow_open_files,
)
from backend.loadtest.load_samples import LoadSampler
from backend.loadtest.measure import ttft_ms
from backend.loadtest.pacer import READY_AHEAD_S, Pacer
from backend.loadtest.percentiles import nearest_rank
from backend.loadtest.plan import PlannedRequest, Workload
from backend.loadtest.progress import Counts
from backend.loadtest.request_bytes import RequestBytes
from backend.loadtest.run import Outcome, Run, TargetFacts, WorkerSample
from backend.loadtest.run_clock import RunClock

HOUSEKEEPING_S = 0.02
PROGRESS_S = 0.25
LEAD_S = READY_AHEAD_S + 0.05
LEAD_S_A_REQUEST = 20e-6
"""Between the start of a run and its first send: what is laid out before it takes time."""


class HttpTarget:
    """A URL to send workloads to.

    Args:
        url: with or without `/v1` at its end.
        facts: what it is; its `clock_speed` divides the schedule and multiplies what is measured.
        body_of: the JSON of a request.
        api_key_of: its bearer token, None for none.
        request_timeout_s: after the intended send, in the target's time; what has no end by then
            is `timeout`, and its connection is closed.
        workers: URLs by worker id, whose loads are sampled once a second of the target's time.
        connections: makes those of a run; others than the default may lead elsewhere too.

    Raises:
        ValueError: the URL is none.
    """

    def __init__(
        self,
        url: str,
        facts: TargetFacts,
        *,
        body_of: Callable[[PlannedRequest], bytes],
        api_key_of: Callable[[PlannedRequest], str | None] = lambda _: None,
        request_timeout_s: float = 600.0,
        workers: Mapping[str, str] | None = None,
        connections: Callable[[Address], Connections] = Connections,
    ) -> None:
        self._connections = connections
        self._address = address_of(url)
        self._facts = facts
        self._body_of = body_of
        self._api_key_of = api_key_of
        self._timeout_ms = request_timeout_s * 1000
        self._workers = workers or {}

    async def run(
        self, workload: Workload, on_progress: Callable[[Counts], None] = lambda _: None
    ) -> Run:
        """Send it all and wait for every end. One Outcome a request, in the workload's order.

        A cancel (Ctrl-C under `asyncio.run` is one) ends the run early and is not raised: the Run
        says when. Of what is unfinished then, streams that had begun are `cut`, the rest is
        `timeout`.

        Raises:
            ValueError: an API key that no header can carry.
        """
        allow_open_files()
        requests = sorted(workload.requests, key=lambda request: request.send_at_ms)
        made = RequestBytes(
            requests, self._address, body_of=self._body_of, api_key_of=self._api_key_of
        )
        with _no_collections():
            loop = _OpenLoop(
                requests, made, self._connections(self._address),
                speed=self._facts.clock_speed, duration_ms=workload.duration_ms,
                timeout_ms=self._timeout_ms, on_progress=on_progress,
            )  # fmt: skip
            samples: list[WorkerSample] = []
            sampler = LoadSampler(self._workers, loop.clock, samples.append)
            cpu_s, began_s = time.process_time(), time.monotonic()
            async with sampler.running():
                await loop.run()
            cpu_s, took_s = time.process_time() - cpu_s, time.monotonic() - began_s
        by_plan = {id(flight.outcome.planned): flight.outcome for flight in loop.flights}
        return Run(
            workload=workload,
            target=self._facts,
            outcomes=[by_plan[id(request)] for request in workload.requests],
            samples=samples,
            generator_cpu_share=cpu_s / took_s,
            generator_loop_lag_p99_ms=loop.lag_p99_ms,
            stopped_at_ms=loop.stopped_at_ms,
        )


class _OpenLoop:
    """One run: the Air of its flights."""

    def __init__(
        self,
        requests: list[PlannedRequest],
        made: RequestBytes,
        connections: Connections,
        *,
        speed: float,
        duration_ms: float,
        timeout_ms: float,
        on_progress: Callable[[Counts], None],
    ) -> None:
        self.clock = RunClock(time.monotonic() + LEAD_S + len(requests) * LEAD_S_A_REQUEST, speed)
        self.connections = connections
        self.flights = [
            Flight(Outcome(request, sent_at_ms=request.send_at_ms, end="timeout"), self)
            for request in requests
        ]
        self.stopped_at_ms: float | None = None
        self._made = made
        self._duration_ms = duration_ms
        self._timeout_ms = timeout_ms
        self._on_progress = on_progress
        self._ended = self._ok = self._oldest = 0
        self._ttfts_ms: list[float] = []
        self._lags_ms = array("f")
        self._over = asyncio.Event()
        self._failure: Exception | None = None
        instants_s = [self.clock.at_s(request.send_at_ms) for request in requests]
        self._pacer = Pacer(instants_s, lambda n: self.flights[n].get_ready(), self._send)

    async def run(self) -> None:
        """To the last end."""
        keeper = asyncio.create_task(self._keep_house())
        try:
            if self.flights:
                self._pacer.start()
                await self._over.wait()
        except asyncio.CancelledError:
            self.stopped_at_ms = self.clock.now_ms()
            if (task := asyncio.current_task()) is not None:
                task.uncancel()
        finally:
            self._pacer.stop()
            keeper.cancel()
            self._give_up_all()
            self.connections.close()
        if self._failure is not None:
            raise self._failure
        self._tell()

    @property
    def lag_p99_ms(self) -> float:
        """Of looks at the sockets that were due, in real milliseconds."""
        return nearest_rank(sorted(self._lags_ms), 99) if self._lags_ms else 0.0

    def landed(self, flight: Flight) -> None:
        """See Air."""
        self._ended += 1
        self._ok += flight.outcome.end == "ok"
        if (ttft := ttft_ms(flight.outcome)) is not None:
            insort(self._ttfts_ms, ttft)
        if self._ended == len(self.flights):
            self._over.set()

    def _send(self, n: int) -> None:
        try:
            request = self._made.take()
        except Exception as error:  # noqa: BLE001 - of the caller's body_of: it ends the run
            self._fail(error)
            return
        self.flights[n].send(request)
        asyncio.get_running_loop().call_soon(self._make_one)

    def _make_one(self) -> None:
        with contextlib.suppress(Exception):  # it is made again, and fails, when it is taken
            self._made.make_one()

    def _fail(self, error: Exception) -> None:
        self._failure = self._failure or error
        self._over.set()

    def _give_up_all(self) -> None:
        for flight in self.flights:
            if not flight.landed:
                flight.give_up("cut" if flight.outcome.status == 200 else "timeout")

    async def _keep_house(self) -> None:
        """Deadlines, progress, and how late the loop comes to look at anything."""
        told_s = due_s = time.monotonic()
        while True:
            due_s = max(due_s + HOUSEKEEPING_S, time.monotonic())
            await asyncio.sleep(due_s - time.monotonic())
            now_s = time.monotonic()
            if now_s >= self.clock.start_s:
                self._lags_ms.append(max(0.0, now_s - due_s) * 1000)
            self._land_late(self.clock.ms(now_s))
            if now_s - told_s >= PROGRESS_S:
                told_s = now_s
                try:
                    self._tell()
                except Exception as error:  # noqa: BLE001 - of the caller's display: it ends the run
                    self._fail(error)
                    return

    def _land_late(self, now_ms: float) -> None:
        """All have the same time, so the oldest is first."""
        while self._oldest < self._pacer.called:
            flight = self.flights[self._oldest]
            if not flight.landed:
                if flight.outcome.planned.send_at_ms + self._timeout_ms > now_ms:
                    return
                flight.give_up("timeout")
            self._oldest += 1

    def _tell(self) -> None:
        sent = self._pacer.called
        ended = min(self._ended, sent)
        self._on_progress(
            Counts(
                elapsed_ms=max(0.0, self.clock.now_ms()),
                duration_ms=self._duration_ms,
                sent=sent,
                planned=len(self.flights),
                ok=self._ok,
                errors=ended - self._ok,
                ttft_p95_ms=nearest_rank(self._ttfts_ms, 95) if self._ttfts_ms else None,
            )
        )


@contextlib.contextmanager
def _no_collections() -> Iterator[None]:
    """A full collection over a whole schedule takes tens of milliseconds: what exists now is left
    out of all of them."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
