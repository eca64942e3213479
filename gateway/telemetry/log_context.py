"""Which request a line of the log belongs to. What a request begins (tasks, timers) inherits it."""

from contextvars import Context, ContextVar
from typing import NamedTuple
from uuid import UUID


class LogContext(NamedTuple):
    """What every line of a request has; empty outside requests."""

    request_id: UUID | None = None
    trace_id: int = 0
    """0: it is not traced."""


_NOBODY = LogContext()
_current: ContextVar[LogContext] = ContextVar("log_context", default=_NOBODY)


def begin_request(request_id: UUID, trace_id: int = 0) -> None:
    """From now on the running task, and each that it starts, logs for this request. Call it in a
    task of the request's own, so that nothing else inherits it."""
    _current.set(LogContext(request_id, trace_id))


def outside_requests() -> Context:
    """The context of a task that outlives the request that happens to begin it."""
    return Context()


def current() -> LogContext:
    """The request that the running task works for."""
    return _current.get()
