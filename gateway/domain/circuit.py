"""A circuit breaker: stops asking what keeps failing, and tries again ever more rarely. Pure.

After M. Nygard, *Release It!*: closed, open for a while, then half-open, where a single request may
try; it closes the circuit again, or opens it for twice as long.
"""

from collections import deque
from dataclasses import dataclass, field
from enum import StrEnum


class CircuitState(StrEnum):
    """What a circuit lets through: all, nothing, one request."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


@dataclass(frozen=True)
class CircuitPolicy:
    """When a circuit opens, and for how long."""

    failures: int = 5
    """So many failures, with no success between them..."""
    within_ms: int = 10_000
    """...in so long open it."""
    open_ms: int = 5_000
    """The first time; doubled with each try that fails..."""
    open_ms_max: int = 60_000
    """...up to this."""


@dataclass(eq=False)
class Leave:
    """A request's leave to go through. What it later tells counts only while the circuit has
    neither opened nor closed since: it says nothing of the time after."""

    era: int


@dataclass
class Circuit:
    """One circuit. All times are milliseconds of one clock that does not go back."""

    policy: CircuitPolicy = CircuitPolicy()
    _failures: deque[int] = field(default_factory=deque)
    _era: int = 0
    _open_until_ms: int | None = None
    _open_ms: int = 0
    _trying: Leave | None = None

    def state(self, now_ms: int) -> CircuitState:
        """What it lets through now."""
        if self._open_until_ms is None:
            return CircuitState.CLOSED
        return CircuitState.OPEN if now_ms < self._open_until_ms else CircuitState.HALF_OPEN

    def may_try(self, now_ms: int) -> bool:
        """Whether `begin` would let a request through."""
        state = self.state(now_ms)
        return state is CircuitState.CLOSED or (
            state is CircuitState.HALF_OPEN and self._trying is None
        )

    def begin(self, now_ms: int) -> Leave | None:
        """The leave of one request, or None. One of `succeeded`, `failed` and `abandoned` must
        follow with it."""
        if not self.may_try(now_ms):
            return None
        leave = Leave(self._era)
        if self.state(now_ms) is CircuitState.HALF_OPEN:
            self._trying = leave
        return leave

    def answered(self, leave: Leave) -> None:
        """An answer has begun: the one that tries closes the circuit."""
        if leave is self._trying:
            self._era += 1
            leave.era = self._era
            self._open_until_ms, self._open_ms, self._trying = None, 0, None

    def succeeded(self, leave: Leave) -> None:
        """The request was answered as it should be: failures before it are forgotten."""
        self.answered(leave)
        if leave.era == self._era and self._open_until_ms is None:
            self._failures.clear()

    def failed(self, leave: Leave, now_ms: int) -> None:
        """The request failed through the other side's fault."""
        if leave is self._trying:
            self._open(now_ms, min(self._open_ms * 2, self.policy.open_ms_max))
        elif leave.era == self._era and self._open_until_ms is None:
            self._failures.append(now_ms)
            while self._failures[0] <= now_ms - self.policy.within_ms:
                self._failures.popleft()
            if len(self._failures) >= self.policy.failures:
                self._open(now_ms, self.policy.open_ms)

    def abandoned(self, leave: Leave) -> None:
        """The request ended without telling anything: another may try."""
        if leave is self._trying:
            self._trying = None

    def _open(self, now_ms: int, for_ms: int) -> None:
        self._failures.clear()
        self._era += 1
        self._open_ms, self._open_until_ms, self._trying = for_ms, now_ms + for_ms, None
