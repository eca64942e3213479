"""A schedule carried out: sends, deadlines, progress, and how late the generator itself is."""

import asyncio
import contextlib
import gc
import time
from bisect import insort
from collections.abc import Callable, Iterator

from backend.loadtest.flight import Flight
from backend.loadtest.http_connection import Connections
from backend.loadtest.measure import ttft_ms
from backend.loadtest.own_costs import OwnCosts
from backend.loadtest.pacer import READY_AHEAD_S, Pacer
from backend.loadtest.percentiles import nearest_rank
from backend.loadtest.plan import PlannedRequest
from backend.loadtest.progress import Counts
from backend.loadtest.request_bytes import RequestBytes
from backend.loadtest.run import Outcome
from backend.loadtest.run_clock import RunClock

HOUSEKEEPING_S = 0.02
PROGRESS_S = 0.25
LEAD_S = READY_AHEAD_S + 0.05
LEAD_S_A_REQUEST = 20e-6
"""Between the start of a run and its first send: what is laid out before it takes time."""


class OpenLoop:
    """One run over HTTP. It is the Air of its flights."""

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
        self.costs = OwnCosts(self.clock, duration_ms)
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
            self.costs.end(time.monotonic())
            self._pacer.stop()
            keeper.cancel()
            self._give_up_all()
            self.connections.close()
        if self._failure is not None:
            raise self._failure
        self._tell()

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
        told_s = time.monotonic()
        due_s = told_s + HOUSEKEEPING_S
        while True:
            await asyncio.sleep(max(0.0, due_s - time.monotonic()))
            now_s = time.monotonic()
            self.costs.looked(due_s, now_s)
            due_s = now_s + HOUSEKEEPING_S
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
def no_collections() -> Iterator[None]:
    """A full collection over a whole schedule takes tens of milliseconds: what exists now is left
    out of all of them."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
