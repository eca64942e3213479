"""What became of each request of a load test."""

from array import array
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from backend.loadtest.plan import PlannedRequest, Workload

End = Literal[
    "ok",
    "rate_limited",
    "unavailable",
    "refused",
    "aborted",
    "cut",
    "timeout",
    "failed",
    "unreachable",
]
"""How a request ended: whole; 429; 503; another 4xx; a finish reason `abort`; a stream that ended
without one; no end within the time allowed; an error event or 5xx; no connection."""


@dataclass(slots=True)
class Outcome:
    """One request. Times are milliseconds since the start of the run, in the target's time: on a
    simulated clock that runs at another speed they are scaled to it."""

    planned: PlannedRequest
    sent_at_ms: float = 0.0
    """When it really went out; latency counts from `planned.send_at_ms` all the same."""
    connect_wait_ms: float = 0.0
    """Of that delay, what it waited for a target that was slow to take the connection: the
    generator was not late by it."""
    first_token_at_ms: float | None = None
    last_token_at_ms: float | None = None
    ended_at_ms: float | None = None
    gaps_ms: "array[float]" = field(default_factory=lambda: array("f"))
    """Between one content event and the next."""
    prompt_tokens: int = 0
    cached_tokens: int | None = None
    output_tokens: int = 0
    """As the target counts them; 0 where it did not say. Events are not tokens."""
    end: End = "unreachable"
    status: int | None = None
    code: str | None = None
    """The error's code, where one was given; the system's, as ECONNREFUSED, where it is
    `unreachable`."""
    request_id: str | None = None
    worker: str | None = None


@dataclass(frozen=True, slots=True)
class TargetFacts:
    """What was tested."""

    description: str
    simulated: bool | None
    """Whether its figures are simulated; None where the target does not say."""
    clock_speed: float = 1.0
    """Simulated milliseconds per real one."""
    step_times: str | None = None
    """The profile of a simulated target."""
    kind: Literal["engine", "weir", "unknown"] = "unknown"
    """SGLang or one of Weir's engines; a gateway of Weir; something that does not say."""
    takes_min_tokens: bool = False
    """Whether it is known to take SGLang's `min_tokens`."""


@dataclass(frozen=True, slots=True)
class WorkerSample:
    """One worker's load at one instant, as its `/v1/loads` or the virtual replica says it."""

    at_ms: float
    worker: str
    running: int
    waiting: int
    waiting_tokens: int
    kv_used_tokens: int
    kv_total_tokens: int
    step_lag_ms: float | None = None
    """By how many real milliseconds the latest of a simulated worker's steps of the last seconds
    ended late; None where it was not asked, or is not simulated."""


@dataclass(slots=True)
class Run:
    """One run at one rate."""

    workload: Workload
    target: TargetFacts
    outcomes: list[Outcome]
    samples: list[WorkerSample] = field(default_factory=list)
    generator_cpu_share: float = 0.0
    """Processor time of the generator per second of the schedule, not of what drains after it: 1.0
    is a whole core."""
    generator_loop_lag_p99_ms: float = 0.0
    """How late the generator was to look at its sockets, in real milliseconds, over the same."""
    stopped_at_ms: float | None = None
    """When the run was ended before its time. Requests planned for later were never sent, and are
    `timeout`."""
    ran_between: tuple[datetime, datetime] | None = None
    """When it began and ended by the wall clock, where that matters."""
    retracted: int | None = None
    rows_written: int | None = None
    """Usage records of these requests, where the test could look."""
