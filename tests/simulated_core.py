"""A simulated replica for tests, driven step by step, with step times that are easy to add up."""

from dataclasses import dataclass, field

from backend.simulated.flags import SchedulerFlags
from backend.simulated.profiles import StepTimes
from backend.simulated.replica import Replica
from backend.simulated.request import TOKEN_BYTES, EndReason, SimulatedRequest
from backend.simulated.step import Step, StepEnd

TIMES = StepTimes(10.0, 1.0, 0.01, 5.0, 0.1, 0.001)


def ids(*tokens: int) -> bytes:
    """These token ids as the core takes them."""
    return b"".join(token.to_bytes(TOKEN_BYTES, "little") for token in tokens)


def text(length: int, first: int = 1) -> bytes:
    """So many tokens that count up; texts with another `first` have no prefix in common."""
    return ids(*range(first, first + length))


def request(
    prompt: bytes,
    max_new_tokens: int = 4,
    *,
    ends_after: int = 1_000_000,
    priority: int | None = None,
    ignore_eos: bool = False,
    salt: bytes = b"",
    writes: int = 500_000,
) -> SimulatedRequest:
    """A request whose output counts up from `writes`."""
    return SimulatedRequest(
        rid=f"r{writes}",
        prompt=prompt,
        max_new_tokens=max_new_tokens,
        ends_after=ends_after,
        output_ids=lambda count: text(count, writes),
        priority=priority,
        ignore_eos=ignore_eos,
        salt=salt,
    )


@dataclass
class Played:
    """A replica, its time, and what its steps were."""

    flags: SchedulerFlags
    now_ms: float = 0.0
    steps: list[Step] = field(default_factory=list)
    ended: list[tuple[SimulatedRequest, EndReason]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.replica = Replica(TIMES, self.flags)

    def submit(self, *requests: SimulatedRequest) -> list[SimulatedRequest]:
        """Queue them in this order; returns those refused."""
        refused = [self.replica.submit(r, self.now_ms) for r in requests]
        return [r for r in refused if r is not None]

    def begin(self) -> Step:
        """Begin a step, of which there must be one."""
        step = self.replica.begin_step(self.now_ms)
        assert step is not None
        self.steps.append(step)
        return step

    def end(self) -> StepEnd:
        """End it when its time has passed."""
        self.now_ms += self.steps[-1].duration_ms
        end = self.replica.end_step(self.now_ms)
        self.ended += end.ended
        return end

    def step(self) -> StepEnd:
        """One whole step."""
        self.begin()
        return self.end()

    def run(self, steps: int) -> None:
        """So many whole steps."""
        for _ in range(steps):
            self.step()

    def drain(self) -> None:
        """Steps until nothing is left to do."""
        while self.replica.has_work:
            self.step()

    @property
    def kinds(self) -> list[str]:
        """Of the steps so far."""
        return [step.kind for step in self.steps]


def played(**flags: object) -> Played:
    """A replica with a small pool unless told otherwise."""
    return Played(SchedulerFlags(**{"max_total_tokens": 1000, **flags}))  # type: ignore[arg-type]
