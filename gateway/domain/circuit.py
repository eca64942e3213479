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
    """So many failures..."""
    within_ms: int = 10_000
    """...in so long open it."""
    open_ms: int = 5_000
    """The first time; doubled with each attempt that fails..."""
    open_ms_max: int = 60_000
    """...up to this."""


@dataclass
class Circuit:
    """One circuit. All times are milliseconds of one clock that does not go back."""

    policy: CircuitPolicy = CircuitPolicy()
    _failures: deque[int] = field(default_factory=deque)
    _open_until_ms: int | None = None
    _open_ms: int = 0
    _trying: bool = False

    def state(self, now_ms: int) -> CircuitState:
        """What it lets through now."""
        if self._open_until_ms is None:
            return CircuitState.CLOSED
        return CircuitState.OPEN if now_ms < self._open_until_ms else CircuitState.HALF_OPEN

    def may_try(self, now_ms: int) -> bool:
        """Whether `begin` would let a request through."""
        state = self.state(now_ms)
        return state is CircuitState.CLOSED or (
            state is CircuitState.HALF_OPEN and not self._trying
        )

    def begin(self, now_ms: int) -> bool:
        """Whether a request may go through; then exactly one of `succeeded`, `failed` and
        `abandoned` must follow."""
        if not self.may_try(now_ms):
            return False
        if self.state(now_ms) is CircuitState.HALF_OPEN:
            self._trying = True
        return True

    def succeeded(self) -> None:
        """A request was answered: closed, and the past forgotten."""
        self._failures.clear()
        self._open_until_ms, self._open_ms, self._trying = None, 0, False

    def failed(self, now_ms: int) -> None:
        """A request failed. One that was let through before the circuit opened changes nothing."""
        state = self.state(now_ms)
        if state is CircuitState.OPEN:
            return
        if state is CircuitState.HALF_OPEN:
            if self._trying:
                self._open(now_ms, min(self._open_ms * 2, self.policy.open_ms_max))
            return
        self._failures.append(now_ms)
        while self._failures[0] <= now_ms - self.policy.within_ms:
            self._failures.popleft()
        if len(self._failures) >= self.policy.failures:
            self._open(now_ms, self.policy.open_ms)

    def abandoned(self) -> None:
        """A request ended without telling anything, because its client left: another may try."""
        self._trying = False

    def _open(self, now_ms: int, for_ms: int) -> None:
        self._failures.clear()
        self._open_ms, self._open_until_ms, self._trying = for_ms, now_ms + for_ms, False
