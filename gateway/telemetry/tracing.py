"""What one request did and when, noted as it runs; what becomes of it is decided at its end.

A step costs two readings of the clock and one small object. Spans are made of steps only where the
trace is kept (`gateway/serving/traced.py`). Where nothing is traced all of this is `NO_TRACE`: its
steps are the work itself.
"""

import logging
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from gateway.errors import LimitReached, WeirError
from gateway.telemetry.logs import log_failure
from gateway.wire.traceparent import RemoteSpan, traceparent

Value = str | int | float | bool | tuple[str, ...]
Attributes = Mapping[str, Value]
T = TypeVar("T")
_NOTHING: Attributes = {}
_log = logging.getLogger(__name__)


class TraceClock(Protocol):
    """The clock that never jumps, in microseconds."""

    def monotonic_us(self) -> int:
        """Now."""


class Failure(NamedTuple):
    """Why a step or a request came to nothing, in words of a bounded number."""

    code: str
    is_fault: bool = True
    """Whether something is broken or missing; False of what a tenant may ask and is not given."""
    limit: str | None = None
    """The kind of the tenant's own limit."""


_GONE = {"ClientGone": "client_gone", "CancelledError": "cancelled", "GeneratorExit": "cancelled"}
"""Whoever is not there any more has met no fault."""


def failure_of(error: BaseException) -> Failure:
    """What is said of an exception: never its text, which may quote a prompt."""
    if isinstance(error, WeirError):
        limit = error.type if isinstance(error, LimitReached) else None
        return Failure(error.code, error.status >= 500, limit)
    name = type(error).__name__
    return Failure(_GONE.get(name, name), name not in _GONE)


class SpanData(NamedTuple):
    """One finished span, as it is exported. `kind` is `server`, `client` or `internal`; times are
    Unix time in ns."""

    name: str
    kind: str
    trace_id: int
    span_id: int
    parent_id: int | None
    parent_is_remote: bool
    began_ns: int
    ended_ns: int
    attributes: Attributes
    failed: bool
    link: RemoteSpan | None = None


class Step:
    """One step of a request. A context manager where its work is no awaitable of its own."""

    ended_us = 0
    """0 while it goes on."""
    span_id = 0
    """0 until somebody is told of it."""
    failure: Failure | None = None
    result: object = None
    """What it came to. Kept until the request's end, so nothing that changes until then."""
    attributes: Attributes = _NOTHING

    def __init__(self, trace: "RequestTrace", name: str, parent: "Step | None") -> None:
        """It begins now."""
        self.trace = trace
        self.name = name
        self.parent = parent
        self.began_us = trace.now_us()

    def __enter__(self) -> "Step":
        return self

    def __exit__(self, kind: object, error: BaseException | None, stack: object) -> None:
        self.end(error)

    def end(self, error: BaseException | None = None) -> None:
        """It is over, and came to nothing where there is an error."""
        if error is not None:
            self.failure = failure_of(error)
        self.ended_us = self.trace.now_us()

    def tell(self, attributes: Callable[[], Attributes], failed_as: str | None = None) -> None:
        """What is to be said of it, as it is now, and what it failed as. Does not raise."""
        try:
            self.attributes = attributes()
        except Exception as error:  # noqa: BLE001 - a bug of ours costs what is said, no request
            log_failure(_log, error, "what is to be said of a step is lost")
        if failed_as is not None:
            self.failure = Failure(failed_as)

    @property
    def traceparent(self) -> str | None:
        """What who works for this step is told of the trace."""
        if not self.span_id:
            self.span_id = random.getrandbits(64) or 1
        trace = self.trace
        return traceparent(trace.trace_id, self.span_id, sampled=trace.sampled)


class RequestTrace:
    """The steps of one request. Those of the straight line, `of`, follow and hold one another;
    `leaf` is for what may go on beside others, and holds nothing."""

    def __init__(
        self,
        clock: TraceClock,
        *,
        at_ms: int,
        at_us: int,
        sampled: bool,
    ) -> None:
        """It came at `at_ms` (Unix ms), which is `at_us` on the clock. `sampled`: it is kept,
        whatever becomes of it."""
        self.now_us = clock.monotonic_us
        self.at_ms = at_ms
        self.at_us = at_us
        self.sampled = sampled
        self.remote: RemoteSpan | None = None
        """The client's span that caused it."""
        self.link: RemoteSpan | None = None
        self.trace_id = random.getrandbits(128) or 1
        self.steps: list[Step] = []
        self.failure: Failure | None = None
        """What its client was told, or would have been."""
        self._within: Step | None = None
        """The step of the straight line that is open."""

    def go_on_with(self, remote: RemoteSpan) -> None:
        """It is part of the client's trace. Before anybody was told of its id."""
        self.remote = remote
        self.trace_id = remote.trace_id

    async def of(
        self, name: str, work: Awaitable[T], tell: Callable[[], Attributes] | None = None
    ) -> T:
        """Await one step, and remember what it came to. `tell` is asked then what else to say."""
        step = self._within = self.leaf(name)
        try:
            result = await work
        except BaseException as error:
            step.failure = failure_of(error)
            raise
        else:
            step.result = result
            if tell is not None:
                step.tell(tell)
            return result
        finally:
            step.ended_us = self.now_us()
            self._within = step.parent

    def leaf(self, name: str) -> Step:
        """A step that begins now, within the one of the straight line that is open."""
        step = Step(self, name, self._within)
        self.steps.append(step)
        return step

    def failed(self, error: BaseException, *, by_client: bool = False) -> None:
        """The request failed or was refused, or nobody is there any more to hear of it.
        `by_client`: it asked for this, whatever the status is."""
        failure = failure_of(error)
        self.failure = failure._replace(is_fault=False) if by_client else failure

    def forget(self) -> None:
        """Nobody asks for its steps any more. What they came to refers back to the request and so
        to this: left as it is, only a garbage collection would free it."""
        self.steps.clear()

    def results(self, kind: type[T]) -> Sequence[T]:
        """What its steps came to, of this kind, in order."""
        return [step.result for step in self.steps if isinstance(step.result, kind)]


class _NoStep(Step):
    """Nothing is noted."""

    def __init__(self) -> None:
        pass

    def end(self, error: BaseException | None = None) -> None:
        """Nothing."""

    def tell(self, attributes: Callable[[], Attributes], failed_as: str | None = None) -> None:
        """Nothing: what would be said is not even put together."""

    @property
    def traceparent(self) -> str | None:
        """No trace, so nobody is told of one."""
        return None


class _NoTrace(RequestTrace):
    """Nothing is noted, and no step costs more than itself."""

    def __init__(self) -> None:
        self.trace_id = 0
        self.steps = []
        self._step = _NoStep()

    def of(
        self, name: str, work: Awaitable[T], tell: Callable[[], Attributes] | None = None
    ) -> Any:
        """The work itself."""
        return work

    def leaf(self, name: str) -> Step:
        """The same for all."""
        return self._step

    def failed(self, error: BaseException, *, by_client: bool = False) -> None:
        """Nothing."""


NO_TRACE: RequestTrace = _NoTrace()
"""Of every request where nothing is traced."""
