"""Runs a replica's steps against a clock."""

import asyncio
import time
from collections import deque
from collections.abc import Callable

from backend.sglang_http.faults import FaultPlan
from backend.simulated.arrivals import Arrivals
from backend.simulated.clock import Clock
from backend.simulated.replica import Replica
from backend.simulated.request import EndReason, SimulatedRequest
from backend.simulated.sequence import SimulatedSequence
from backend.simulated.step import Step

BEHIND_MS_MAX = 200.0
"""Real milliseconds. A process that was held up for longer does not make up for the rest."""
LAG_WINDOW_S = 5.0
LAGS_MAX = 20_000

StepEnded = Callable[
    [list[SimulatedRequest], list[tuple[SimulatedRequest, EndReason]], float], None
]


class Stepper:
    """Each step ends when the model says, counted from the nominal end of the one before: timers
    that are late do not add up."""

    def __init__(
        self,
        replica: Replica,
        clock: Clock,
        arrivals: Arrivals,
        faults: FaultPlan,
        ended: StepEnded,
    ) -> None:
        self._replica = replica
        self._clock = clock
        self._arrivals = arrivals
        self._faults = faults
        self._ended = ended
        self._wake = asyncio.Event()
        self._changed = asyncio.Event()
        self._lags: deque[tuple[float, float]] = deque(maxlen=LAGS_MAX)
        self._token_ms = 0.0
        self._decoding = False
        self.let_in: Callable[[SimulatedSequence, float], None] = lambda sequence, due_ms: None
        """Called with what enters the queue, and when."""
        self.began: Callable[[], None] = lambda: None
        """Called when a step has begun with which somebody came into the batch or lost a place."""
        self.decoded = 0
        """How many sequences this step took further, beyond their first token."""
        self.gap_ms = 0.0
        """How long it was since the last such step."""
        self.prefill_busy_us = 0
        self.decode_moments = [0.0] * 6
        """As `engine.Scheduled.decode_moments`."""

    def wake(self) -> None:
        """Something arrived, left or changed."""
        self._wake.set()

    def faults_changed(self) -> None:
        """They were armed, or cleared: the step in flight goes on at the pace that they set."""
        self._changed.set()
        self.wake()

    @property
    def lag_ms(self) -> float:
        """By how much, in real milliseconds, the latest of the last seconds' steps was late, one
        in twenty left out: a step that is late delays nobody but its own readers."""
        self._forget()
        late_ms = sorted(lag for _, lag in self._lags)
        return late_ms[(len(late_ms) - 1) * 19 // 20] if late_ms else 0.0

    async def run(self) -> None:
        """Step for ever."""
        at_ms = self._clock.now_ms()
        while True:
            self._admit(at_ms)
            step = None
            if self._replica.has_work:
                step = self._replica.begin_step(at_ms)
                if self._replica.lost_places or (step is not None and step.new_tokens):
                    self.began()
            if step is None:
                at_ms = max(at_ms, await self._idle())
                self._decoding = False
                continue
            at_ms = await self._finish(step, at_ms)

    async def _finish(self, step: Step, at_ms: float) -> float:
        """Wait for the step's end and tell what came of it. Returns when that was."""
        due_ms = await self._pass(step.duration_ms, at_ms)
        took_ms = due_ms - at_ms
        while self._faults.stalls:
            self._wake.clear()
            await self._wake.wait()
            due_ms = max(due_ms, self._clock.now_ms())
        due_ms = self._note_lag(due_ms)
        self._admit(due_ms)
        end = self._replica.end_step(due_ms)
        self._count(step, took_ms, len(end.generated))
        self._note_gap(step, due_ms)
        self._ended(end.generated, end.ended, due_ms)
        return due_ms

    async def _pass(self, duration_ms: float, at_ms: float) -> float:
        """Let the step's time pass, as slowly as is armed meanwhile; one that began at its own
        pace keeps that. Returns when it was over."""
        while (slowness := self._faults.slowness) != 1.0:
            self._changed.clear()
            due_ms = at_ms + duration_ms * slowness
            if not await self._clock.until_or(due_ms, self._changed):
                return due_ms
            now_ms = min(max(at_ms, self._clock.now_ms()), due_ms)
            duration_ms -= (now_ms - at_ms) / slowness
            at_ms = now_ms
        await self._clock.until(at_ms + duration_ms)
        return at_ms + duration_ms

    def _admit(self, now_ms: float) -> None:
        while (due := self._arrivals.pop_until(now_ms)) is not None:
            self.let_in(due[1], due[0])

    async def _idle(self) -> float:
        """Wait until there may be something to do. Returns when that is."""
        self._wake.clear()
        next_ms = self._arrivals.next_ms
        if next_ms is None:
            await self._wake.wait()
        else:
            wait_s = (next_ms - self._clock.now_ms()) / 1000 / self._clock.speed
            try:
                async with asyncio.timeout(max(0.0, wait_s)):
                    await self._wake.wait()
            except TimeoutError:
                return next_ms
        now_ms = self._clock.now_ms()
        next_ms = self._arrivals.next_ms
        return now_ms if next_ms is None else min(now_ms, next_ms)

    def _note_gap(self, step: Step, due_ms: float) -> None:
        """How long sequences waited for their tokens of this step."""
        self.decoded = step.sequences
        if step.sequences:
            self.gap_ms = due_ms - self._token_ms
        # Who joins others that decode waits less than they do the first time; it is left at that.
        if step.sequences or not self._decoding:
            self._token_ms = due_ms
        self._decoding = self._decoding or bool(step.sequences)

    def _note_lag(self, due_ms: float) -> float:
        """Note how late this is. Returns the step's end, later where there is too much to make
        up for."""
        behind_ms = (self._clock.now_ms() - due_ms) / self._clock.speed
        self._lags.append((time.monotonic(), max(0.0, behind_ms)))
        self._forget()
        return due_ms + max(0.0, behind_ms - BEHIND_MS_MAX) * self._clock.speed

    def _forget(self) -> None:
        oldest_s = time.monotonic() - LAG_WINDOW_S
        while self._lags and self._lags[0][0] < oldest_s:
            self._lags.popleft()

    def _count(self, step: Step, took_ms: float, generated: int) -> None:
        took_us = int(took_ms * 1000)
        if step.kind != "decode":
            self.prefill_busy_us += took_us
            return
        sequences = step.sequences
        moments = (1, sequences, took_us, sequences**2, sequences * took_us, generated)
        for place, value in enumerate(moments):
            self.decode_moments[place] += value
