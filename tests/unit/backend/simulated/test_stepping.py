"""Steps against a clock whose timers are late."""

import asyncio
from array import array
from itertools import pairwise

import pytest

from backend.sglang_http.engine import GenerationRequest, Prompt, Sampling
from backend.sglang_http.faults import Fault, FaultPlan
from backend.sglang_http.ledger import Ledger
from backend.sglang_http.live import LiveSequences
from backend.simulated.arrivals import Arrivals
from backend.simulated.clock import Clock
from backend.simulated.flags import SchedulerFlags
from backend.simulated.profiles import DEFAULT_PROFILE
from backend.simulated.replica import Replica
from backend.simulated.request import EndReason, SimulatedRequest
from backend.simulated.sequence import SimulatedSequence, simulated_sequence
from backend.simulated.settings import SimulatedSettings
from backend.simulated.stepping import BEHIND_MS_MAX, Stepper

ONE_MS = DEFAULT_PROFILE.step.decode_ms(1, 0)


class LateClock(Clock):
    """Stands still but for `until`, which returns so many milliseconds late."""

    def __init__(self, late_ms: float) -> None:
        super().__init__()
        self.at_ms = 0.0
        self.late_ms = late_ms

    def now_ms(self) -> float:
        """As far as it was let."""
        return self.at_ms

    async def until(self, at_ms: float) -> None:
        """Late."""
        self.at_ms = max(self.at_ms, at_ms + self.late_ms)
        await asyncio.sleep(0)


def sequence(rid: str, tokens: int) -> SimulatedSequence:
    """One of ten prompt tokens."""
    prompt = Prompt("", tuple(array("I", range(10))))
    request = GenerationRequest(rid, prompt, Sampling(tokens, temperature=0.0), stream=True)
    return simulated_sequence(LiveSequences(Ledger()).add(request), SimulatedSettings())


class Run:
    """A stepper with one request that is due at 30 ms."""

    def __init__(self, late_ms: float, tokens: int = 6) -> None:
        self.clock = LateClock(late_ms)
        self.replica = Replica(DEFAULT_PROFILE.step, SchedulerFlags())
        self.arrivals = Arrivals()
        self.faults = FaultPlan()
        self.ends_ms: list[float] = []
        self.entered_ms: list[float] = []
        self.done = asyncio.Event()
        self.stepper = Stepper(
            self.replica, self.clock, self.arrivals, self.faults, self._step_ended
        )
        self.stepper.let_in = self._let_in
        self.arrivals.add(30.0, sequence("r", tokens))

    async def to_the_end(self) -> None:
        """Step until the request has ended."""
        task = asyncio.create_task(self.stepper.run())
        await asyncio.wait_for(self.done.wait(), 20)
        task.cancel()

    def _let_in(self, arrived: SimulatedSequence, due_ms: float) -> None:
        self.entered_ms.append(due_ms)
        self.replica.submit(arrived.request, due_ms)

    def _step_ended(
        self,
        generated: list[SimulatedRequest],
        ended: list[tuple[SimulatedRequest, EndReason]],
        now_ms: float,
    ) -> None:
        self.ends_ms.append(now_ms)
        if ended:
            self.done.set()


async def test_late_timers_do_not_add_up() -> None:
    """Each step ends a step time after the one before, whatever the timers did."""
    run = Run(late_ms=7.0)
    await run.to_the_end()
    assert run.entered_ms == [30.0]
    times = DEFAULT_PROFILE.step
    assert run.ends_ms[0] == pytest.approx(30.0 + times.prefill_ms(10, 50.0))
    gaps = [late - early for early, late in pairwise(run.ends_ms)]
    assert gaps == pytest.approx([times.decode_ms(1, 11 + n) for n in range(5)])
    assert run.stepper.lag_ms == pytest.approx(7.0)
    assert run.stepper.decode_moments[:2] == [5.0, 5.0]
    assert run.stepper.decode_moments[2] == pytest.approx(sum(gaps) * 1000, abs=5)


async def test_a_long_stop_is_not_made_up_for() -> None:
    """Who was held up for seconds does not run that many steps at once."""
    run = Run(late_ms=BEHIND_MS_MAX + 5000)
    await run.to_the_end()
    assert run.ends_ms[1] - run.ends_ms[0] > 5000


async def test_a_slow_replica() -> None:
    """Every step takes as many times as long as is armed; two faults multiply."""
    run = Run(late_ms=0.0)
    for factor in (2.0, 3.0):
        run.faults.add(Fault(kind="slow", scope="replica", factor=factor))
    await run.to_the_end()
    gaps = [late - early for early, late in pairwise(run.ends_ms)]
    assert gaps[0] == pytest.approx(6 * DEFAULT_PROFILE.step.decode_ms(1, 11))


def test_arrivals_by_their_time() -> None:
    """The earliest first, those of one instant in order; who is aborted leaves."""
    arrivals = Arrivals()
    late, early, beside, gone = (sequence(rid, 1) for rid in "abcd")
    for due_ms, each in ((9.0, late), (5.0, early), (5.0, beside), (1.0, gone)):
        arrivals.add(due_ms, each)
    assert arrivals.remove({id(gone.live)}) == [gone]
    assert arrivals.next_ms == 5.0
    assert arrivals.pop_until(4.9) is None
    assert [arrivals.pop_until(9.0) for _ in range(4)] == [
        (5.0, early),
        (5.0, beside),
        (9.0, late),
        None,
    ]
