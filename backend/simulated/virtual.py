"""Replicas on a virtual clock: in one process, without HTTP, as fast as the processor allows.

The clock jumps from one event to the next, so an hour of traffic takes seconds and the same input
gives the same times to the last digit.
"""

import heapq
import math
from collections.abc import Callable
from itertools import count
from typing import Protocol

from backend.simulated.flags import SchedulerFlags
from backend.simulated.profiles import Profile
from backend.simulated.replica import Replica
from backend.simulated.request import EndReason, SimulatedRequest


class Observer(Protocol):
    """Who is told what happens. Times are simulated milliseconds."""

    def generated(self, request: SimulatedRequest, now_ms: float) -> None:
        """It has one token more."""

    def ended(self, request: SimulatedRequest, reason: EndReason | None, now_ms: float) -> None:
        """It is over; `reason` None where the queue had no place for it."""


class VirtualReplicas:
    """Some replicas of one profile under one clock that starts at 0."""

    def __init__(
        self, profile: Profile, flags: SchedulerFlags, observer: Observer, replicas: int = 1
    ) -> None:
        self.now_ms = 0.0
        self.replicas = [Replica(profile.step, flags) for _ in range(replicas)]
        self.in_flight = [0] * replicas
        """Requests by replica that have arrived at its front end and not ended."""
        self._front_end_ms = profile.front_end_ms
        self._observer = observer
        self._busy = [False] * replicas
        self._where: dict[SimulatedRequest, int] = {}
        self._in_front_end: set[SimulatedRequest] = set()
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()

    def at(self, when_ms: float, event: Callable[[], None]) -> None:
        """Call `event` when the clock gets there."""
        heapq.heappush(self._events, (when_ms, next(self._order), event))

    def arrive(self, request: SimulatedRequest, replica: int) -> None:
        """The request reaches a replica's HTTP front end now; its queue, a little later."""
        self.in_flight[replica] += 1
        self._where[request] = replica
        self._in_front_end.add(request)
        self.at(self.now_ms + self._front_end_ms, lambda: self._submit(request, replica))

    def abort(self, request: SimulatedRequest) -> None:
        """Its client hangs up now. It ends at once, or with the step in flight; one that has ended
        is left alone."""
        index = self._where.get(request)
        if index is None:
            return
        waits_in_front = request in self._in_front_end
        if waits_in_front or self.replicas[index].abort(request, self.now_ms):
            self._ended(request, EndReason.ABORT)

    def run(self, until_ms: float = math.inf) -> None:
        """Let the clock run until nothing is left to do, or until then: a time that is given is
        what the clock shows afterwards, whether or not anything happened at it."""
        events = self._events
        while events and events[0][0] <= until_ms:
            self.now_ms = events[0][0]
            # All that happens at one instant is there before the next step is decided.
            while events and events[0][0] == self.now_ms:
                heapq.heappop(events)[2]()
            for index, busy in enumerate(self._busy):
                if not busy:
                    self._begin(index)
        if math.isfinite(until_ms):
            self.now_ms = max(self.now_ms, until_ms)

    def _submit(self, request: SimulatedRequest, replica: int) -> None:
        if request not in self._in_front_end:
            return
        self._in_front_end.remove(request)
        request.arrived_ms = self.now_ms
        refused = self.replicas[replica].submit(request, self.now_ms)
        if refused is not None:
            self._ended(refused, None)

    def _begin(self, index: int) -> None:
        replica = self.replicas[index]
        step = replica.begin_step(self.now_ms) if replica.has_work else None
        if step is not None:
            self._busy[index] = True
            self.at(self.now_ms + step.duration_ms, lambda: self._end(index))

    def _end(self, index: int) -> None:
        self._busy[index] = False
        done = self.replicas[index].end_step(self.now_ms)
        for request in done.generated:
            self._observer.generated(request, self.now_ms)
        for request, reason in done.ended:
            self._ended(request, reason)

    def _ended(self, request: SimulatedRequest, reason: EndReason | None) -> None:
        self._in_front_end.discard(request)
        self.in_flight[self._where.pop(request)] -= 1
        self._observer.ended(request, reason, self.now_ms)
